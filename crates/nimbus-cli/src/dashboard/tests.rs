//! A fleet at a glance.

use std::time::Duration;

use nimbus_wire::v1::{AgentInfo, AgentState, Propagation};

use crate::dashboard::{Dashboard, Sample, Sort};

fn agent(name: &str, applied: u64, last_relevant: u64, lag_ms: u64, failed: u32) -> AgentInfo {
    AgentInfo {
        agent: name.to_owned(),
        state: AgentState::Connected.into(),
        applied,
        last_relevant,
        lag_ms,
        failed,
        in_sync: applied >= last_relevant && failed == 0,
        ..AgentInfo::default()
    }
}

fn sample(revision: u64, agents: Vec<AgentInfo>) -> Sample {
    let newest = Propagation { agents: 4, applied: 3, failed: 1, ..Propagation::default() };
    Sample { epoch: 1, revision, connected: agents.len() as u32, agents, newest: Some(newest), ..Sample::default() }
}

/// Names of the agents, as they are shown.
fn order(dashboard: &Dashboard) -> String {
    let lines = dashboard.page(false);
    let rows = lines.iter().skip_while(|line| !line.starts_with("AGENT")).skip(1);
    rows.map(|row| row.split(' ').next().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn rates_are_the_difference_of_two_looks() {
    let mut dashboard = Dashboard::new("bus:7400", Sort::Lag);
    dashboard.take(sample(10, vec![agent("a", 10, 10, 0, 0), agent("b", 4, 10, 3_000, 2)]), None);
    let first = "\
bus         bus:7400, revision 10
agents      2 connected, 0 away, 0 lost; 1 of 2 in sync
objects     2 failed, 0 pending, 0 degraded, over all agents
newest      [######################--------] 75%, applied by 3 of 4 agents, 1 failed

AGENT   STATE       POSITION   LAG   RATE   FAILED   PENDING   DEGRADED
b       connected   4 of 10    3s    -      2        0         0
a       connected   10         -     -      0        0         0";
    assert_eq!(dashboard.page(false).join("\n"), first);

    let agents = vec![agent("a", 13, 13, 0, 0), agent("b", 4, 13, 5_000, 2), agent("c", 1, 1, 0, 0)];
    dashboard.take(sample(13, agents), Some(Duration::from_secs(2)));
    let lines = dashboard.page(false);
    assert_eq!(lines[0], "bus         bus:7400, revision 13, 1.5 a second");
    let rows = [
        "b       connected   4 of 13    5s    0.0/s   2        0         0",
        "a       connected   13         -     1.5/s   0        0         0",
        "c       connected   1          -     -       0        0         0",
    ];
    assert_eq!(lines[6..], rows);
}

#[test]
fn another_history_has_no_rate() {
    let mut dashboard = Dashboard::new("bus:7400", Sort::Name);
    dashboard.take(sample(10, vec![agent("a", 10, 10, 0, 0)]), None);
    let other = Sample { epoch: 2, ..sample(1, vec![agent("a", 1, 1, 0, 0)]) };
    dashboard.take(other, Some(Duration::from_secs(1)));
    assert_eq!(dashboard.page(false)[0], "bus         bus:7400, revision 1");
}

#[test]
fn agents_are_sorted_by_what_somebody_looks_for() {
    let mut dashboard = Dashboard::new("bus:7400", Sort::Lag);
    let agents = |applied| {
        vec![agent("a", 9, 9, 0, 1), agent("b", 1, 9, 5_000, 0), agent("c", 1, 9, 0, 3), agent("d", applied, 9, 0, 0)]
    };
    dashboard.take(sample(9, agents(8)), None);
    dashboard.take(sample(9, agents(9)), Some(Duration::from_secs(1)));
    assert_eq!(order(&dashboard), "c b a d", "c has been behind for longer than anybody remembers");
    let mut next = || {
        dashboard.sort_by_next();
        order(&dashboard)
    };
    assert_eq!([next(), next(), next(), next()], ["c a b d", "d a b c", "a b c d", "c b a d"]);
}

#[test]
fn a_screen_shows_what_fits_and_scrolls() {
    let mut dashboard = Dashboard::new("bus:7400", Sort::Name);
    let agents = (0..100).map(|n| agent(&format!("a{n:02}"), 1, 1, 0, 0)).collect();
    dashboard.take(sample(1, agents), None);
    let shown = |dashboard: &Dashboard, height| {
        let lines = dashboard.screen(height, false);
        assert!(lines.len() <= height);
        let names = lines.iter().filter(|line| line.starts_with('a') && !line.starts_with("agents"));
        names.map(|line| line[..3].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&dashboard, 10), ["a00", "a01", "a02"]);
    dashboard.scroll(2);
    assert_eq!(shown(&dashboard, 10), ["a02", "a03", "a04"]);
    dashboard.scroll(1_000);
    assert_eq!(shown(&dashboard, 10), ["a99"]);
    dashboard.scroll(-2_000);
    assert_eq!(shown(&dashboard, 8), ["a00"]);
    assert_eq!(shown(&dashboard, 3), [""; 0], "a screen may be small");
    assert_eq!(shown(&dashboard, 0), [""; 0]);

    dashboard.fail("no\nbus");
    assert!(dashboard.screen(20, false).contains(&"trouble     no bus".to_owned()));
}
