//! Whether an object is as it should be.

use nimbus_core::Generation;
use nimbus_wire::v1;

use crate::standing::code::{Code, READY};

/// Whether an object is as it should be: a condition as long as nobody reads it, because most are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) generation: Generation,
}

// === impl Ready ===

impl Ready {
    pub(crate) fn new(code: Code, message: impl Into<String>, generation: Generation) -> Self {
        Self { code, message: message.into(), generation }
    }

    /// The condition that says so.
    pub(crate) fn to_condition(&self) -> v1::Condition {
        v1::Condition {
            r#type: READY.to_owned(),
            state: self.code.state().into(),
            code: self.code.as_str().to_owned(),
            message: self.message.clone(),
            generation: self.generation.0,
        }
    }
}
