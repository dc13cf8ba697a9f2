//! Names that a project can have.

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{failure::Failure, new::KEYWORDS};

/// The name of a package, its library and its programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrateName(String);

/// Registries take no longer ones.
const MAX_LENGTH: usize = 64;

/// Names of crates that are there anyway, which the library of a project would hide; and of folders in which cargo keeps what
/// it builds, which its programs would collide with.
const TAKEN: [&str; 9] = ["alloc", "build", "core", "deps", "examples", "incremental", "proc-macro", "std", "test"];

/// What every project depends on.
const DEPENDENCIES: [&str; 10] = [
    "anyhow",
    "clap",
    "ctkit",
    "nimbus-agent",
    "nimbus-testkit",
    "prost",
    "tempfile",
    "tokio",
    "tracing",
    "tracing-subscriber",
];

// === impl CrateName ===

impl CrateName {
    /// The last part of a path.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) => Self::parse(name),
            None => Err(Failure::invalid(format!("{} does not end in a name", path.display()))
                .hint("write the folder to make, such as my-controller")),
        }
    }

    /// A name that cargo accepts, and that collides with nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if !is_shaped(text) {
            let hint = match proposal(text) {
                Some(name) => format!("did you mean {name}?"),
                None => "such as my-controller".to_owned(),
            };
            return Err(Failure::invalid(format!(
                "{text:?} cannot be the name of a project: expected a letter, then letters, digits, - or _, in lower case, at \
                 most {MAX_LENGTH}"
            ))
            .hint(hint));
        }
        match taken(text) {
            None => Ok(Self(text.to_owned())),
            Some(by) => Err(Failure::invalid(format!("{text:?} cannot be the name of a project: it is {by}"))
                .hint(format!("such as {}-controller", text.replace('_', "-")))),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As it is written in Rust.
    pub(crate) fn identifier(&self) -> String {
        self.0.replace('-', "_")
    }
}

fn is_shaped(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    text.len() <= MAX_LENGTH && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(rest)
}

/// What has this name already.
fn taken(text: &str) -> Option<&'static str> {
    // To cargo, the name of a crate is the same with either.
    let name = text.replace('_', "-");
    if KEYWORDS.contains(&text) {
        Some("a word of Rust")
    } else if TAKEN.contains(&name.as_str()) {
        Some("taken by Rust or cargo")
    } else if DEPENDENCIES.contains(&name.as_str()) {
        Some("a crate that the project depends on")
    } else {
        None
    }
}

/// The nearest name that has the right shape: `My Controller` and `MyController` are `my-controller`.
fn proposal(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let ends_word = !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && before.is_ascii_lowercase());
        if ends_word && !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if c.is_ascii_alphanumeric() && (!name.is_empty() || c.is_ascii_alphabetic()) {
            name.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    let name = name.trim_end_matches('-');
    (is_shaped(name) && taken(name).is_none()).then(|| name.to_owned())
}
