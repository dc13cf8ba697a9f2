//! Lives of names.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrayvec::ArrayString;

use crate::id::{Invalid, check_name};

/// One life of a name: an object that is deleted and created again has another.
///
/// Cheap to clone: what people and programs make up is short, and lies in place.
#[derive(Clone)]
pub struct Uid(Text);

#[derive(Clone)]
enum Text {
    Short(ArrayString<SHORT>),
    Long(Arc<str>),
}

/// A UUID with its dashes, the longest form of what is usual.
const SHORT: usize = 36;

// === impl Uid ===

impl Uid {
    /// Checks and takes a name.
    ///
    /// # Errors
    /// If it is empty, too long, or has characters that names may not have.
    pub fn new(value: &str) -> Result<Self, Invalid> {
        check_name("uid", value)?;
        Ok(Self(ArrayString::from(value).map_or_else(|_| Text::Long(value.into()), Text::Short)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Short(text) => text,
            Text::Long(text) => text,
        }
    }
}

impl PartialEq for Uid {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Uid {}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Uid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

/// As its text, by which it can be looked up.
impl Hash for Uid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Uid {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
