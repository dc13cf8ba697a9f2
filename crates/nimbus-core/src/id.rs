//! Names of agents, publishers and incarnations, checked when they are made.

mod uid;

use std::{borrow::Borrow, fmt, sync::Arc};

pub use self::uid::Uid;

/// Long enough for a DNS name, which is what people use.
pub(crate) const MAX_ID: usize = 253;

/// Why a name, label or selector from outside was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?}: expected {expected}")]
pub struct Invalid {
    /// What the value was meant to be, such as `agent id`.
    pub what: &'static str,
    /// The value, cut to a length that fits into an error message.
    pub value: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

/// Who subscribes: one per machine, chosen by its operator.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

/// Who publishes: one per controller, shared by its instances.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublisherId(Arc<str>);

/// Whether `c` may stand in names of objects, agents and publishers.
///
/// No `/`, so that `kind/namespace/name` can be taken apart again; nothing that a shell or a log would have to quote.
pub(crate) const fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@' | '+' | '~' | '=')
}

pub(crate) const NAME_RULE: &str = "1 to 253 of the characters A-Z a-z 0-9 - _ . : @ + ~ =";

/// Whether objects, agents and publishers may have this name.
pub fn is_name(value: &str) -> bool {
    // Names are ASCII, so bytes are characters; this is asked of every name of every object.
    !value.is_empty() && value.len() <= MAX_ID && value.bytes().all(|byte| NAME_BYTES[usize::from(byte)])
}

/// [`is_name_char`] of each byte.
static NAME_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        bytes[byte] = is_name_char(byte as u8 as char);
        byte += 1;
    }
    bytes
};

/// Says what names look like if this is none.
///
/// # Errors
/// If it is empty, too long, or has characters that names may not have.
pub fn check_name(what: &'static str, value: &str) -> Result<(), Invalid> {
    is_name(value).then_some(()).ok_or_else(|| Invalid::new(what, value, NAME_RULE))
}

macro_rules! name {
    ($type:ident, $what:literal) => {
        impl $type {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// If it is empty, too long, or has characters that names may not have.
            pub fn new(value: &str) -> Result<Self, Invalid> {
                check_name($what, value)?;
                Ok(Self(value.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(AgentId, "agent id");
name!(PublisherId, "publisher");

// === impl Invalid ===

impl Invalid {
    /// An error about `value`, of which only the beginning is kept.
    pub fn new(what: &'static str, value: &str, expected: &'static str) -> Self {
        let value = if value.chars().count() > 80 {
            value.chars().take(80).chain("…".chars()).collect()
        } else {
            value.to_owned()
        };
        Self { what, value, expected }
    }
}
