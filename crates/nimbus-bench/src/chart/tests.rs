use serde_json::json;

use crate::chart::{QUESTIONS, chart};

#[test]
fn systems_that_answer_the_same_are_drawn_beside_each_other() {
    let line = |system: &str, batch: u64, figure: f64| json!({ "bench": "fanout", "system": system, "subscribers": 1000, "batch": batch, "cpu_us_per_delivery": figure });
    let missing = json!({ "bench": "fanout", "system": "etcd", "missing": true });
    let other = json!({ "bench": "idle", "system": "nimbus", "rss_kb_per_agent": 1.0 });
    let lines = [line("nimbus", 1, 10.0), line("a<b", 1, 20.0), line("nimbus", 16, 0.25), missing, other];
    let chart = chart(&QUESTIONS[0], &lines);
    let names: Vec<_> = chart.groups.iter().map(|group| (group.name.as_str(), group.bars.len())).collect();
    assert_eq!(names, [("1000 subscribers, 1 at once", 2), ("1000 subscribers, 16 at once", 1)]);
    let svg = chart.to_string();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("a&lt;b") && svg.contains(">0.25<") && svg.contains(">20<"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn a_figure_of_nothing_can_be_drawn() {
    let lines = [json!({ "bench": "idle", "system": "nimbus", "subscribers": 1, "rss_kb_per_agent": 0.0 })];
    let svg = chart(&QUESTIONS[3], &lines).to_string();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}
