//! Files that people write, as trees in which everything knows where it stands.

mod json;
mod scalar;
mod yaml;

#[cfg(test)]
mod tests;

use std::{fmt, rc::Rc};

/// A place in a file; both count from one, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value, and where it begins. Shared where an alias stands for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) content: Content,
    /// How many there are below it, with itself.
    weight: usize,
    /// How many are nested in one another below it, with itself.
    height: usize,
}

/// What a value is, before anybody says what it should be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    /// In decimal, whatever its size, or `Infinity`, `-Infinity`, `NaN`.
    Number(String),
    Text(String),
    List(Vec<Rc<Node>>),
    Map(Vec<Entry>),
}

/// A member of a map. Names are different from one another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) at: Position,
    pub(crate) value: Rc<Node>,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) at: Position,
    pub(crate) message: String,
}

/// What was in a file. Where there are complaints, some of it may be missing.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    pub(crate) documents: Vec<Rc<Node>>,
    pub(crate) complaints: Vec<Complaint>,
}

/// Deeper than any spec that a person can read, and far from the end of any stack.
const MAX_DEPTH: usize = 64;

/// Reads a file. What begins as JSON does is JSON: YAML takes most of that, too, but neither tabs nor the escapes of characters
/// beyond the first plane, and it takes mistakes for text.
pub(crate) fn read(text: &str) -> Documents {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let inside = text.trim_start().strip_prefix(['{', '[']);
    let is_json = inside.is_some_and(|inside| inside.trim_start().starts_with(['"', '{', '[', '}', ']']));
    if is_json { json::read(text) } else { yaml::read(text) }
}

// === impl Node ===

impl Node {
    fn new(at: Position, content: Content) -> Self {
        let below = |nodes: &mut dyn Iterator<Item = &Rc<Node>>| {
            nodes.fold((1, 1), |(weight, height): (usize, usize), node| {
                (weight.saturating_add(node.weight), height.max(node.height + 1))
            })
        };
        let (weight, height) = match &content {
            Content::List(items) => below(&mut items.iter()),
            Content::Map(entries) => below(&mut entries.iter().map(|entry| &entry.value)),
            _ => (1, 1),
        };
        Self { at, content, weight, height }
    }

    /// What it is, in the words of a message.
    pub(crate) fn what(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::Text(_) => "text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    /// The member of that name, if it is a map with one.
    pub(crate) fn get(&self, name: &str) -> Option<&Entry> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|entry| entry.name == name),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }
}

// === impl Complaint ===

impl Complaint {
    pub(crate) fn new(at: Position, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
