//! How times are written.

use crate::age::{age, span};

#[test]
fn ages_and_spans_have_few_digits() {
    let second = 1_000;
    let (minute, hour, day) = (60 * second, 3_600 * second, 86_400 * second);
    for (ms, expected) in [
        (0, "0s"),
        (999, "0s"),
        (5 * second, "5s"),
        (119 * second, "119s"),
        (2 * minute, "2m"),
        (119 * minute, "119m"),
        (2 * hour, "2h"),
        (47 * hour, "47h"),
        (2 * day, "2d"),
    ] {
        assert_eq!(age(ms), expected, "{ms}");
    }
    for (ms, expected) in
        [(0, "0ms"), (999, "999ms"), (1_000, "1.0s"), (1_250, "1.2s"), (9_999, "9.9s"), (10_000, "10s")]
    {
        assert_eq!(span(ms), expected, "{ms}");
    }
}
