//! Names of kinds that code can be written for.

#[cfg(test)]
mod tests;

use crate::{failure::Failure, new::KEYWORDS};

/// The full name of a protobuf message, which has the same name in Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KindName {
    package: String,
    message: String,
}

/// Packages that belong to others.
const FOREIGN: [&str; 2] = ["google", "nimbus"];

/// Long enough for everything, and short enough for the name of a file.
const MAX_LENGTH: usize = 200;

// === impl KindName ===

impl KindName {
    /// A package and the name of a message.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let refused =
            |why: &str, hint: &str| Err(Failure::invalid(format!("{text:?} cannot be a kind here: {why}")).hint(hint));
        let Some((package, message)) = text.rsplit_once('.') else {
            return refused("a kind has a package and a name", &format!("such as demo.v1.{}", camel(text)));
        };
        if text.len() > MAX_LENGTH {
            return refused(&format!("it is longer than {MAX_LENGTH}"), "such as demo.v1.Thing");
        }
        if !package.split('.').all(is_segment) {
            return refused("its package is not words in lower case with dots between them", "such as demo.v1.Thing");
        }
        if let Some(word) = package.split('.').find(|word| KEYWORDS.contains(word)) {
            return refused(&format!("{word} is a word of Rust"), "such as demo.v1.Thing");
        }
        if FOREIGN.iter().any(|foreign| package.split('.').next() == Some(foreign)) {
            return refused("its package belongs to somebody else", "such as demo.v1.Thing");
        }
        // The generated type would be called otherwise: HTTPRoute becomes HttpRoute.
        if message != camel(message) || message == "Self" {
            let name = Some(camel(message)).filter(|name| name != "Self");
            let hint = format!("such as {package}.{}", name.as_deref().unwrap_or("Thing"));
            return refused("its name is not one in CamelCase that Rust has, too", &hint);
        }
        Ok(Self { package: package.to_owned(), message: message.to_owned() })
    }

    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// As people call it on the command line.
    pub(crate) fn short(&self) -> String {
        self.message.to_ascii_lowercase()
    }

    /// Where the proto file is, below the folder for proto files.
    pub(crate) fn proto_file(&self) -> String {
        format!("{}/{}.proto", self.package.replace('.', "/"), snake(&self.message))
    }
}

/// `team_a` or `v1`.
fn is_segment(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    text.split('_').all(is_word)
}

/// The name that a generated type has: `HttpRoute` for `HTTPRoute`, and `Thing` if there is nothing to make a name of.
fn camel(text: &str) -> String {
    let mut name = String::new();
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let ends_capitals = rest.peek().is_some_and(char::is_ascii_lowercase);
        let is_new_word = c.is_ascii_uppercase() && (!before.is_ascii_uppercase() || ends_capitals);
        if c.is_ascii_alphabetic() && (is_new_word || !before.is_ascii_alphanumeric()) {
            name.push(c.to_ascii_uppercase());
        } else if c.is_ascii_alphanumeric() && !name.is_empty() {
            name.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    if name.is_empty() { "Thing".to_owned() } else { name }
}

/// `NetworkPolicy` is `network_policy`.
fn snake(message: &str) -> String {
    let mut name = String::new();
    for c in message.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}
