//! Why something that should be true could not be made true.

use std::{borrow::Cow, error::Error, fmt, time::Duration};

/// Why something that should be true could not be made true.
///
/// Every error becomes one with `?`, and is then tried again, with backoff. What only a change of the object can cure
/// is [permanent](Permanent::permanent):
///
/// ```
/// use nimbus_core::{Failure, Permanent as _};
///
/// fn port(text: &str) -> Result<u16, Failure> {
///     Ok(text.parse().permanent()?)
/// }
/// assert!(port("http").unwrap_err().is_permanent());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    code: Cow<'static, str>,
    message: String,
    permanent: bool,
    retry_after: Option<Duration>,
}

/// Marks errors that only a change of the object can cure.
pub trait Permanent<T> {
    /// The error is permanent: it is tried again when the object changes, and not before.
    ///
    /// # Errors
    /// The error that was there.
    fn permanent(self) -> Result<T, Failure>;
}

/// Of a failure that has no code of its own.
const CODE: &str = "ERROR";

// === impl Failure ===

impl Failure {
    /// A failure that is tried again.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: CODE.into(), message: message.into(), permanent: false, retry_after: None }
    }

    /// The same with a code: a word that dashboards can count.
    #[must_use]
    pub fn with_code(self, code: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), ..self }
    }

    /// The same, to be tried again when the object changes, and not before.
    #[must_use]
    pub fn permanent(self) -> Self {
        Self { permanent: true, ..self }
    }

    /// The same, to be tried again after this long rather than after the usual backoff.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), permanent: false, ..self }
    }

    /// A word that dashboards can count.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What happened, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether only a change of the object can cure it.
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// When to try again, if the failure says so.
    pub fn delay(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// With all that caused it, outermost first.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::new(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == CODE { f.write_str(&self.message) } else { write!(f, "{}: {}", self.code, self.message) }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasting = if self.permanent { " (permanent)" } else { "" };
        write!(f, "{self}{lasting}")
    }
}

impl<T, E: Into<Failure>> Permanent<T> for Result<T, E> {
    fn permanent(self) -> Result<T, Failure> {
        self.map_err(|error| error.into().permanent())
    }
}
