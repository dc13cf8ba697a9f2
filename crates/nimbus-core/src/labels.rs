//! Labels of objects and agents.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::id::Invalid;

/// Key and value pairs that selectors look at. Cheap to clone.
///
/// One piece of text, in the order of the keys, with a separator after each key and each value: an object has its labels for
/// as long as it lives, and this is the least that they take. The order of such texts is that of the pairs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labels(Arc<str>);

/// Stands in no key and no value, and before everything that does.
const END: char = '\0';

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
    let valid = !key.is_empty() && key.len() <= MAX_KEY && key.chars().all(is_key_char);
    valid.then_some(()).ok_or_else(|| Invalid::new("label", key, KEY_RULE))
}

pub(crate) fn check_value(value: &str) -> Result<(), Invalid> {
    let valid = value.len() <= MAX_VALUE && value.chars().all(is_value_char);
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
        Ok(Self::pack(labels))
    }

    /// Takes labels that were checked, in the order of their keys.
    pub(crate) fn from_checked(labels: &[(String, String)]) -> Self {
        Self::pack(labels.iter().map(|(key, value)| (key, value)))
    }

    fn pack<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)> + Clone) -> Self {
        let len = labels.clone().into_iter().map(|(key, value)| key.len() + value.len() + 2).sum();
        let mut text = String::with_capacity(len);
        for (key, value) in labels {
            text.push_str(key);
            text.push(END);
            text.push_str(value);
            text.push(END);
        }
        Self(text.into())
    }

    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(k, value)| (k == key).then_some(value))
    }

    /// All labels, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split_terminator(END);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
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

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
