//! Labels of objects and agents.

use std::{cell::RefCell, collections::BTreeMap, fmt, sync::Arc};

use arrayvec::ArrayString;

use crate::id::Invalid;

/// Key and value pairs that selectors look at. Cheap to clone.
///
/// One piece of text, in the order of the keys, with a separator after each key and each value: an object has its labels for
/// as long as it lives, and this is the least that they take. The order of such texts is that of the pairs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labels(Arc<str>);

/// Where the text is put together: few labels need no room of their own for that.
#[derive(Default)]
struct Scratch {
    short: ArrayString<256>,
    long: String,
}

/// Labels that were put together a moment ago. Objects are many and sorts of them are few, so most labels are found here,
/// and lie in memory once.
#[derive(Default)]
struct Recent {
    labels: [Labels; 8],
    /// The oldest.
    next: usize,
}

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// Stands in no key and no value, and before everything that does.
const END: &str = "\0";

/// Room for a DNS prefix and a name.
const MAX_KEY: usize = 253;

/// Label values are words, not documents.
const MAX_VALUE: usize = 253;

const KEY_RULE: &str = "a label key of 1 to 253 of the characters A-Z a-z 0-9 - _ . /";
const VALUE_RULE: &str = "a label value of at most 253 of the characters A-Z a-z 0-9 - _ . / : @ +";

pub(crate) fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')
}

pub(crate) fn is_value_char(c: char) -> bool {
    is_key_char(c) || matches!(c, ':' | '@' | '+')
}

pub(crate) fn check_key(key: &str) -> Result<(), Invalid> {
    let valid = !key.is_empty() && key.len() <= MAX_KEY && key.bytes().all(|byte| is_key_char(byte.into()));
    valid.then_some(()).ok_or_else(|| Invalid::new("label", key, KEY_RULE))
}

pub(crate) fn check_value(value: &str) -> Result<(), Invalid> {
    let valid = value.len() <= MAX_VALUE && value.bytes().all(|byte| is_value_char(byte.into()));
    valid.then_some(()).ok_or_else(|| Invalid::new("label", value, VALUE_RULE))
}

// === impl Labels ===

impl Labels {
    /// Checks and takes labels.
    ///
    /// # Errors
    /// If a key or a value has characters that labels may not have.
    pub fn new(labels: &BTreeMap<String, String>) -> Result<Self, Invalid> {
        for (key, value) in labels {
            check_key(key)?;
            check_value(value)?;
        }
        let mut scratch = Scratch::default();
        labels.iter().for_each(|(key, value)| scratch.label(key, value));
        Ok(scratch.labels())
    }

    /// These and one more that was checked, in place of another of its key.
    #[must_use]
    pub(crate) fn with(&self, key: &str, value: &str) -> Self {
        let mut scratch = Scratch::default();
        let others = || self.iter().filter(|(other, _)| *other != key);
        let (before, after) =
            (others().take_while(|(other, _)| *other < key), others().skip_while(|(other, _)| *other < key));
        for (key, value) in before.chain([(key, value)]).chain(after) {
            scratch.label(key, value);
        }
        scratch.labels()
    }

    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(k, value)| (k == key).then_some(value))
    }

    /// All labels, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(&self.0)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        // Each key and each value has a separator after it.
        self.0.bytes().filter(|byte| *byte == 0).count() / 2
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The labels as they travel.
    pub fn to_wire(&self) -> BTreeMap<String, String> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

// === impl Recent ===

impl Recent {
    /// The labels of this text: those that are here, or new ones, in place of the oldest.
    fn labels(&mut self, text: &str) -> Labels {
        if let Some(same) = self.labels.iter().find(|labels| &*labels.0 == text) {
            return same.clone();
        }
        let new = Labels(text.into());
        self.labels[self.next] = new.clone();
        self.next = (self.next + 1) % self.labels.len();
        new
    }
}

// === impl Scratch ===

impl Scratch {
    fn label(&mut self, key: &str, value: &str) {
        for part in [key, END, value, END] {
            if self.long.is_empty() && self.short.try_push_str(part).is_ok() {
                continue;
            }
            if self.long.is_empty() {
                self.long.push_str(&self.short);
            }
            self.long.push_str(part);
        }
    }

    fn labels(&self) -> Labels {
        if self.long.is_empty() {
            RECENT.with_borrow_mut(|recent| recent.labels(&self.short))
        } else {
            Labels(self.long.as_str().into())
        }
    }
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    let mut part = move || {
        // A separator is one byte.
        let end = rest.bytes().position(|byte| byte == 0)?;
        let (part, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        Some(part)
    };
    std::iter::from_fn(move || Some((part()?, part()?)))
}

impl<const N: usize> TryFrom<[(&str, &str); N]> for Labels {
    type Error = Invalid;

    /// Checks and takes labels in any order; of a key that is there twice, the last value counts.
    ///
    /// # Errors
    /// If a key or a value has characters that labels may not have.
    fn try_from(mut pairs: [(&str, &str); N]) -> Result<Self, Invalid> {
        for (key, value) in pairs {
            check_key(key)?;
            check_value(value)?;
        }
        pairs.sort_by_key(|(key, _)| *key);
        let mut scratch = Scratch::default();
        for (at, (key, value)) in pairs.into_iter().enumerate() {
            if pairs.get(at + 1).is_none_or(|(next, _)| *next != key) {
                scratch.label(key, value);
            }
        }
        Ok(scratch.labels())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
