//! Notes on objects, for people and programs.

use std::{collections::BTreeMap, sync::Arc};

use crate::{id::Invalid, labels::check_key};

/// Notes on an object; selectors do not look at them. Cheap to clone, and free if there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Annotations(Option<Arc<BTreeMap<String, String>>>);

// === impl Annotations ===

impl Annotations {
    /// Checks and takes annotations. Values may be anything.
    ///
    /// # Errors
    /// If a key has characters that keys may not have.
    pub fn new(annotations: BTreeMap<String, String>) -> Result<Self, Invalid> {
        annotations.keys().try_for_each(|key| check_key(key))?;
        Ok(Self((!annotations.is_empty()).then(|| Arc::new(annotations))))
    }

    /// The value of an annotation.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.as_ref()?.get(key).map(String::as_str)
    }

    /// All of them, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|all| all.iter()).map(|(key, value)| (&**key, &**value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The annotations as they travel.
    pub fn to_wire(&self) -> BTreeMap<String, String> {
        self.0.as_deref().cloned().unwrap_or_default()
    }
}
