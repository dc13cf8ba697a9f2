use std::time::Duration;

use crate::histogram::Histogram;

#[test]
fn percentiles_are_within_two_percent() {
    let mut histogram = Histogram::default();
    for micros in 1..=100_000 {
        histogram.add(Duration::from_micros(micros));
    }
    for percent in [1.0, 50.0, 90.0, 99.0, 100.0] {
        let (found, expected) = (histogram.percentile(percent).as_secs_f64(), percent / 1e3);
        assert!((found / expected - 1.0).abs() < 0.02, "p{percent}: {found}, expected {expected}");
    }
    assert_eq!(histogram.max(), Duration::from_millis(100));
    assert_eq!(histogram.total(), 100_000);
}

#[test]
fn an_empty_one_has_no_time() {
    assert_eq!(Histogram::default().percentile(99.0), Duration::ZERO);
}
