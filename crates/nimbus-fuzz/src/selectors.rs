//! Selectors, as text.

use std::collections::BTreeMap;

use nimbus_core::{Labels, Selector};

/// A selector that is accepted is printed so that it means the same, and its pairs are pairs that it demands.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let selector = match Selector::parse(text) {
        Ok(selector) => selector,
        Err(error) => return assert!(!error.to_string().is_empty(), "refused without a reason"),
    };
    let printed = selector.to_string();
    let again = Selector::parse(&printed);
    assert_eq!(again.as_ref().ok(), Some(&selector), "{text:?} is printed as {printed:?}");
    let again = again.unwrap();
    assert_eq!(again.to_string(), printed);
    for labels in sets(text) {
        let matches = selector.matches(&labels);
        assert_eq!(matches, again.matches(&labels), "{text:?} and {printed:?} differ on {labels:?}");
        if matches {
            for pivot in selector.pivots() {
                let has = |(key, value): &(Box<str>, Box<str>)| labels.get(key) == Some(value);
                assert!(pivot.iter().any(has), "{text:?} matches {labels:?} without any of {pivot:?}");
            }
        }
    }
}

/// Labels that have to do with a selector, for there is nothing in them but its own words.
pub(crate) fn sets(text: &str) -> Vec<Labels> {
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || "-_./".contains(c)))
        .filter(|word| !word.is_empty())
        .take(8)
        .chain([""])
        .collect();
    let pair = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let pairs = words.iter().flat_map(|key| words.iter().map(move |value| pair(key, value)));
    let firsts = words.iter().map(|key| ((*key).to_owned(), words[0].to_owned())).collect();
    let lasts = words.windows(2).map(|words| (words[0].to_owned(), words[1].to_owned())).collect();
    let sets = pairs.chain([BTreeMap::new(), firsts, lasts]);
    sets.filter_map(|set| Labels::new(&set).ok()).collect()
}
