//! How long callers wait.

use super::*;

#[test]
fn timeouts_are_read_as_grpc_writes_them() {
    fn check(text: &str, expected: Option<Duration>) {
        let mut headers = HeaderMap::new();
        headers.insert(TIMEOUT, HeaderValue::from_str(text).unwrap());
        assert_eq!(timeout(&headers), expected, "{text:?}");
    }

    assert_eq!(timeout(&HeaderMap::new()), None);
    check("2H", Some(Duration::from_secs(7_200)));
    check("3M", Some(Duration::from_secs(180)));
    check("99999999S", Some(Duration::from_secs(99_999_999)));
    check("1m", Some(Duration::from_millis(1)));
    check("10u", Some(Duration::from_micros(10)));
    check("0n", Some(Duration::ZERO));
    for nonsense in ["", "S", "1", "1s", "-1S", "+1S", "1.5S", "100000000S", " 1S", "1 S"] {
        check(nonsense, None);
    }
}
