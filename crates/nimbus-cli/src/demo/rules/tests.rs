//! Tests of rules.

use crate::demo::rules::compile;

#[test]
fn rules_become_statements_or_are_refused_by_name() {
    fn check(rule: &str, expected: Option<&str>) {
        match (compile(&[rule.to_owned()]), expected) {
            (Ok(statements), Some(expected)) => assert_eq!(statements, [expected]),
            (Err(failure), None) => assert!(failure.to_string().contains(&format!("{rule:?}")), "{failure}"),
            (found, expected) => panic!("{rule:?}: expected {expected:?}, found {found:?}"),
        }
    }

    check("allow tcp 443", Some("tcp dport 443 accept"));
    check("deny udp 53 from 10.0.0.0/8", Some("ip saddr 10.0.0.0/8 udp dport 53 drop"));
    check("permit tcp 443", None);
    check("allow icmp 1", None);
    check("allow tcp 0", None);
    check("allow tcp 65536", None);
    check("allow tcp 443 from anywhere", None);
    check("allow tcp 443 from 10.0.0.0/33", None);
    check("allow tcp", None);
    check("", None);
}
