//! Labels of objects and agents.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::id::Invalid;

/// Key and value pairs that selectors look at. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labels(Arc<[(Box<str>, Box<str>)]>);

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
        let checked = labels.iter().map(|(key, value)| {
            check_key(key)?;
            check_value(value)?;
            Ok((key.as_str().into(), value.as_str().into()))
        });
        Ok(Self(checked.collect::<Result<_, _>>()?))
    }

    /// Takes labels that were checked.
    pub(crate) fn from_checked(labels: BTreeMap<String, String>) -> Self {
        if labels.is_empty() {
            return Self::default();
        }
        Self(labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// All labels, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
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
