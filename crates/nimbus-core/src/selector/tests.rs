//! Selectors as people write them.

use std::collections::BTreeMap;

use crate::{Labels, Selector};

fn labels(text: &str) -> Labels {
    let pairs: BTreeMap<String, String> = text
        .split_whitespace()
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Labels::new(&pairs).unwrap()
}

/// Parses, matches each set of labels, and is the same after being written and read again.
fn check(text: &str, canonical: &str, matching: &[&str], others: &[&str]) {
    let selector = Selector::parse(text).unwrap();
    assert_eq!(selector.to_string(), canonical, "the canonical form of `{text}`");
    assert_eq!(Selector::parse(canonical).unwrap(), selector, "`{canonical}` is `{text}`");
    for set in matching {
        assert!(selector.matches(&labels(set)), "`{text}` matches {set:?}");
    }
    for set in others {
        assert!(!selector.matches(&labels(set)), "`{text}` does not match {set:?}");
    }
    for terms in selector.pivots() {
        for set in matching {
            let set = labels(set);
            let has_one = terms.iter().any(|(key, value)| set.get(key) == Some(&**value));
            assert!(has_one, "{set:?} matches `{text}`, so it has one of {terms:?}");
        }
    }
}

#[test]
fn selectors_match_as_kubernetes_users_expect() {
    check("", "", &["", "a=b"], &[]);
    check("  ", "", &["", "a=b"], &[]);
    check("zone=a", "zone=a", &["zone=a", "zone=a x=y"], &["", "zone=b", "x=a"]);
    check("zone==a", "zone=a", &["zone=a"], &["zone=b"]);
    check(" zone = a ", "zone=a", &["zone=a"], &["zone=b"]);
    check("zone!=a", "zone!=a", &["", "zone=b"], &["zone=a"]);
    check("zone in (a,b)", "zone in (a,b)", &["zone=a", "zone=b"], &["", "zone=c"]);
    check("zone in(b , a)", "zone in (a,b)", &["zone=a", "zone=b"], &["", "zone=c"]);
    check("zone in (a)", "zone=a", &["zone=a"], &["", "zone=b"]);
    check("zone notin (a,b)", "zone notin (a,b)", &["", "zone=c"], &["zone=a", "zone=b"]);
    check("zone notin (a)", "zone!=a", &["", "zone=c"], &["zone=a"]);
    check("gpu", "gpu", &["gpu=", "gpu=yes"], &["", "cpu=yes"]);
    check("!gpu", "!gpu", &["", "cpu=yes"], &["gpu=", "gpu=yes"]);
    check("! gpu", "!gpu", &[""], &["gpu="]);
    check("gpu=", "gpu=", &["gpu="], &["", "gpu=yes"]);
    check("in", "in", &["in=x"], &[""]);
    check("in in (in)", "in=in", &["in=in"], &["in=x"]);
    check("example.com/zone=a", "example.com/zone=a", &["example.com/zone=a"], &["zone=a"]);
    let all = "zone in (a,b),role=edge,tier!=db,gpu,!canary";
    let canonical = "role=edge,zone in (a,b),tier!=db,gpu,!canary";
    check(all, canonical, &["zone=b role=edge gpu=1"], &["zone=b role=edge", "zone=b role=edge gpu=1 canary="]);
    // No labels can meet both, which is not an error.
    check("zone=a,zone=b", "zone=a,zone=b", &[], &["zone=a", "zone=b"]);
}

#[test]
fn selectors_with_the_same_requirements_are_equal() {
    let same = ["a=1,b in (x,y),!c", "!c,b in (y,x),a==1", "b in (x,y,x) , a in (1), ! c", "!c,a=1,a=1,b in(x,y)"];
    for text in same {
        assert_eq!(Selector::parse(text).unwrap(), Selector::parse(same[0]).unwrap(), "`{text}`");
    }
    for text in ["a=1,b in (x,y)", "a=1,b in (x),!c", "a!=1,b in (x,y),!c", ""] {
        assert_ne!(Selector::parse(text).unwrap(), Selector::parse(same[0]).unwrap(), "`{text}`");
    }
}

#[test]
fn what_is_no_selector_is_refused_as_a_whole() {
    let wrong = [
        ",",
        "a,",
        ",a",
        "a,,b",
        "=",
        "=a",
        "!",
        "!=a",
        "a b",
        "a=b=c",
        "a=b c",
        "!a=b",
        "a in",
        "a in b",
        "a in (b",
        "a in b)",
        "a in (b))",
        "a in ((b))",
        "(a)",
        "in (a)",
        "a within (b)",
        "a in (b) c",
        "a)",
        "a(b",
        "ä=b",
        "a=ä",
        "a in (b;c)",
        "a=b,c in (d",
    ];
    for text in wrong {
        let error = Selector::parse(text).expect_err(text);
        assert_eq!((error.what, error.value.as_str()), ("selector", text), "the error shows what was written");
    }
    assert!(Selector::parse(&"k".repeat(253)).is_ok());
    assert!(Selector::parse(&"k".repeat(254)).is_err());
    assert!(Selector::parse(&format!("k={}", "v".repeat(254))).is_err());
}
