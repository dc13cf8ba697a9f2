//! Bursts, and what comes after them.

use super::*;

#[test]
fn so_many_at_once_and_so_many_a_second() {
    let began = Instant::now();
    let at = |millis| began + Duration::from_millis(millis);
    let mut bucket = Bucket::new(3, 10, began);
    assert_eq!([0, 0, 0, 0, 99].map(|millis| bucket.take(at(millis))), [true, true, true, false, false]);
    assert_eq!([100, 100, 199, 250].map(|millis| bucket.take(at(millis))), [true, false, false, true]);
    // It holds no more than it did in the beginning.
    assert_eq!([0; 4].map(|_| bucket.take(at(60_000))), [true, true, true, false]);
}
