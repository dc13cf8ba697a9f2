//! YAML documents.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::document::{Complaint, Content, Documents, Entry, MAX_DEPTH, Node, Position, scalar};

/// How many values the aliases of one file may stand for: enough to repeat oneself, and not enough for a file of a few lines to
/// fill the memory.
const MAX_ALIASED: usize = 100_000;

/// A list or map that has begun.
struct Open {
    at: Position,
    anchor: usize,
    content: Begun,
}

enum Begun {
    List(Vec<Rc<Node>>),
    Map { entries: Vec<Entry>, names: HashSet<String>, key: Option<(String, Position)> },
}

/// A file under way.
#[derive(Default)]
struct Builder {
    documents: Documents,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    aliased: usize,
}

/// Reads all documents. After something that is no YAML, nothing more is read.
pub(super) fn read(text: &str) -> Documents {
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::default();
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => builder.step(event, position(&span.start)),
            Err(error) => Err(Complaint::new(position(error.marker()), error.info())),
        };
        if let Err(complaint) = step {
            builder.documents.complaints.push(complaint);
            break;
        }
    }
    builder.documents
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

// === impl Builder ===

impl Builder {
    fn step(&mut self, event: Event<'_>, at: Position) -> Result<(), Complaint> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(Open { content: Begun::Map { key: key @ None, .. }, .. }) = self.open.last_mut() {
                    *key = Some((text.clone().into_owned(), at));
                    if anchor > 0 {
                        let node = Node::new(at, Content::Text(text.into_owned()));
                        self.anchors.insert(anchor, Rc::new(node));
                    }
                    return Ok(());
                }
                let content = self.scalar(&text, style, tag.as_deref(), at);
                self.add(Rc::new(Node::new(at, content)), anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), at);
                self.begin(at, anchor, Begun::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), at);
                self.begin(at, anchor, Begun::Map { entries: Vec::new(), names: HashSet::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::DocumentEnd => {
                self.anchors.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Content {
        match tag {
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Content::Text(text.to_owned()),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix != "binary" => scalar::resolve(text),
            Some(tag) => {
                self.complain(at, format!("the tag {tag} has no meaning here"));
                Content::Null
            }
            None if style == ScalarStyle::Plain => scalar::resolve(text),
            None => Content::Text(text.to_owned()),
        }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, at: Position) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            self.complain(at, format!("the tag {tag} has no meaning here"));
        }
    }

    fn begin(&mut self, at: Position, anchor: usize, content: Begun) -> Result<(), Complaint> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Complaint::new(at, format!("more than {MAX_DEPTH} lists and maps are nested in one another")));
        }
        self.open.push(Open { at, anchor, content });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Complaint> {
        let Some(Open { at, anchor, content }) = self.open.pop() else { return Ok(()) };
        let content = match content {
            Begun::List(items) => Content::List(items),
            Begun::Map { entries, .. } => Content::Map(entries),
        };
        self.add(Rc::new(Node::new(at, content)), anchor)
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Complaint> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(Complaint::new(at, "the alias stands for something that contains it"));
        };
        self.aliased = self.aliased.saturating_add(node.weight);
        if self.aliased > MAX_ALIASED {
            return Err(Complaint::new(
                at,
                format!("the aliases of this file stand for more than {MAX_ALIASED} values"),
            ));
        }
        if self.open.len() + node.height > MAX_DEPTH + 1 {
            return Err(Complaint::new(at, format!("more than {MAX_DEPTH} lists and maps are nested in one another")));
        }
        self.add(node, 0)
    }

    /// Puts a value where it belongs: into the list or map that is open, or it is a document.
    fn add(&mut self, node: Rc<Node>, anchor: usize) -> Result<(), Complaint> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            if node.content != Content::Null {
                self.documents.documents.push(node);
            }
            return Ok(());
        };
        match &mut open.content {
            Begun::List(items) => items.push(node),
            Begun::Map { entries, names, key } => match key.take() {
                Some((name, at)) if names.contains(&name) => self.complain(at, format!("`{name}` is there twice")),
                Some((name, at)) => {
                    names.insert(name.clone());
                    entries.push(Entry { name, at, value: node });
                }
                None => match &node.content {
                    Content::Text(text) => *key = Some((text.clone(), node.at)),
                    _ => return Err(Complaint::new(node.at, format!("a key is text, and not {}", node.what()))),
                },
            },
        }
        Ok(())
    }

    fn complain(&mut self, at: Position, message: String) {
        self.documents.complaints.push(Complaint::new(at, message));
    }
}
