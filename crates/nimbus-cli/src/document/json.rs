//! JSON documents.

use std::{collections::HashSet, iter::Peekable, rc::Rc, str::Chars};

use crate::document::{Complaint, Content, Documents, Entry, MAX_DEPTH, Node, Position};

/// A text, and how far it has been read.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    at: Position,
    complaints: Vec<Complaint>,
}

/// Reads all documents, one after the other, as programs write logs of them. After something that is no JSON, nothing more is
/// read.
pub(super) fn read(text: &str) -> Documents {
    let mut reader =
        Reader { rest: text.chars().peekable(), at: Position { line: 1, column: 1 }, complaints: Vec::new() };
    let mut documents = Vec::new();
    loop {
        // Some set documents apart as YAML does.
        while matches!(reader.peek(), Some('-')) && !documents.is_empty() {
            reader.next();
        }
        if reader.peek().is_none() {
            break;
        }
        match reader.value(0) {
            Ok(node) => documents.push(node),
            Err(complaint) => {
                reader.complaints.push(complaint);
                break;
            }
        }
    }
    Documents { documents, complaints: reader.complaints }
}

// === impl Reader ===

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            self.at = Position { line: self.at.line + 1, column: 1 };
        } else {
            self.at.column += 1;
        }
        Some(next)
    }

    fn skip_blanks(&mut self) {
        while self.rest.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r')) {
            self.next();
        }
    }

    /// The next character that means something.
    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest.peek().copied()
    }

    fn value(&mut self, depth: usize) -> Result<Rc<Node>, Complaint> {
        let next = self.peek();
        let at = self.at;
        if depth >= MAX_DEPTH && matches!(next, Some('{' | '[')) {
            return Err(Complaint::new(at, format!("more than {MAX_DEPTH} lists and maps are nested in one another")));
        }
        let content = match next {
            Some('{') => self.map(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Content::Text(self.text()?),
            Some(_) => self.word()?,
            None => return Err(Complaint::new(at, "the file ends within a value")),
        };
        Ok(Rc::new(Node::new(at, content)))
    }

    fn map(&mut self, depth: usize) -> Result<Content, Complaint> {
        let (mut entries, mut names) = (Vec::new(), HashSet::new());
        self.next();
        if self.closes('}') {
            return Ok(Content::Map(entries));
        }
        loop {
            let next = self.peek();
            let at = self.at;
            if next != Some('"') {
                return Err(self.expected("a name in quotes"));
            }
            let name = self.text()?;
            self.expect(':', "a colon")?;
            let value = self.value(depth + 1)?;
            if names.insert(name.clone()) {
                entries.push(Entry { name, at, value });
            } else {
                self.complaints.push(Complaint::new(at, format!("`{name}` is there twice")));
            }
            if self.closes('}') {
                return Ok(Content::Map(entries));
            }
            self.expect(',', "a comma or `}`")?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Content, Complaint> {
        let mut items = Vec::new();
        self.next();
        if self.closes(']') {
            return Ok(Content::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.closes(']') {
                return Ok(Content::List(items));
            }
            self.expect(',', "a comma or `]`")?;
        }
    }

    fn closes(&mut self, bracket: char) -> bool {
        let closes = self.peek() == Some(bracket);
        if closes {
            self.next();
        }
        closes
    }

    fn expect(&mut self, wanted: char, words: &str) -> Result<(), Complaint> {
        if self.peek() == Some(wanted) {
            self.next();
            return Ok(());
        }
        Err(self.expected(words))
    }

    fn expected(&mut self, words: &str) -> Complaint {
        match self.peek() {
            Some(found) => Complaint::new(self.at, format!("expected {words}, found {found:?}")),
            None => Complaint::new(self.at, format!("expected {words}, but the file ends")),
        }
    }

    /// A string, from its first quotation mark to its last. The standard library of JSON knows what the escapes mean.
    fn text(&mut self) -> Result<String, Complaint> {
        let at = self.at;
        let mut raw = String::new();
        raw.extend(self.next());
        loop {
            let Some(next) = self.next() else { return Err(Complaint::new(at, "the file ends within a text")) };
            raw.push(next);
            match next {
                '"' => break,
                '\\' => raw.extend(self.next()),
                _ => {}
            }
        }
        serde_json::from_str(&raw)
            .map_err(|_| Complaint::new(at, "a text with a control character or an unknown escape"))
    }

    fn word(&mut self) -> Result<Content, Complaint> {
        let at = self.at;
        let mut word = String::new();
        while let Some(c) = self.rest.peek().filter(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')) {
            word.push(*c);
            self.next();
        }
        match &*word {
            "null" => Ok(Content::Null),
            "true" => Ok(Content::Bool(true)),
            "false" => Ok(Content::Bool(false)),
            "" => Err(self.expected("a value")),
            _ if serde_json::from_str::<serde_json::Number>(&word).is_ok() => Ok(Content::Number(word)),
            _ => Err(Complaint::new(at, format!("expected a value, found `{word}`"))),
        }
    }
}
