use nimbus_core::Kind;
use prometheus_client::{encoding::text, registry::Registry};

use crate::metrics::kinds::{KindLatencies, MAX_KINDS};

#[test]
fn kinds_beyond_the_first_ones_share_a_place() {
    let latencies = KindLatencies::default();
    for round in 0..2 {
        for at in 0..MAX_KINDS + 10 {
            latencies.observe(Some(&Kind::new(&format!("demo.v1.Kind{at}")).unwrap()), f64::from(round));
        }
    }
    latencies.observe(None, 1.0);
    let mut registry = Registry::default();
    registry.register("took", "It took", latencies.family().clone());
    let mut told = String::new();
    text::encode(&mut told, &registry).unwrap();
    let counts: Vec<&str> = told.lines().filter(|line| line.starts_with("took_count")).collect();
    assert_eq!(counts.len(), MAX_KINDS + 1, "{counts:#?}");
    assert!(counts.contains(&"took_count{kind=\"other\"} 21"), "{counts:#?}");
    assert!(counts.contains(&"took_count{kind=\"demo.v1.Kind0\"} 2"), "{counts:#?}");
}
