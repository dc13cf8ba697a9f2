//! Parts of a manifest: text, lists, maps, and what they may be called.

use std::collections::BTreeMap;

use nimbus_core::nearest;

use crate::{
    document::{Complaint, Content, Entry, Node},
    schemas::Reader,
};

/// The members of a map that has only certain ones.
pub(super) struct Members<'a> {
    node: &'a Node,
    entries: &'a [Entry],
}

// === impl Members ===

impl<'a> Members<'a> {
    /// The members of a `what`, called as one of `names`; all others are complained of.
    pub(super) fn of(reader: &mut Reader<'_>, what: &str, node: &'a Node, names: &[&str]) -> Option<Self> {
        let Content::Map(entries) = &node.content else {
            reader.complain(node, format!("{what} is a map, found {}", node.what()));
            return None;
        };
        for entry in entries.iter().filter(|entry| !names.contains(&&*entry.name)) {
            let hint = nearest(&entry.name, names.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
            let message = format!("{what} has no field `{}`{}", entry.name, hint.unwrap_or_default());
            reader.complaints.push(Complaint::new(entry.at, message));
        }
        Some(Self { node, entries })
    }

    /// The member of that name, unless it is nothing.
    pub(super) fn get(&self, name: &str) -> Option<&'a Node> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        (entry.value.content != Content::Null).then_some(&*entry.value)
    }

    /// The text of that name; empty if it is not there.
    pub(super) fn text(&self, reader: &mut Reader<'_>, name: &str) -> Option<String> {
        self.get(name).map_or_else(|| Some(String::new()), |node| text(reader, name, node))
    }

    /// The text of that name, which must be there.
    pub(super) fn required(&self, reader: &mut Reader<'_>, what: &str, name: &str) -> Option<String> {
        match self.get(name) {
            Some(node) => text(reader, name, node),
            None => {
                reader.complain(self.node, format!("{what} needs `{name}`"));
                None
            }
        }
    }

    /// The name of that name, which must look like one; empty if it is not there.
    pub(super) fn name(&self, reader: &mut Reader<'_>, name: &'static str) -> Option<String> {
        let value = self.text(reader, name)?;
        let Some(node) = self.get(name) else { return Some(value) };
        checked(reader, node, nimbus_core::check_name(name, &value)).map(|()| value)
    }

    /// Text by name; each pair must pass `check`.
    pub(super) fn pairs(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        check: impl Fn(&BTreeMap<String, String>) -> Result<(), nimbus_core::Invalid>,
    ) -> Option<BTreeMap<String, String>> {
        let Some(node) = self.get(name) else { return Some(BTreeMap::new()) };
        let Content::Map(entries) = &node.content else {
            reader.complain(node, format!("`{name}` is a map, found {}", node.what()));
            return None;
        };
        let mut pairs = BTreeMap::new();
        for entry in entries {
            let Some(value) = text(reader, &entry.name, &entry.value) else { continue };
            let pair = BTreeMap::from([(entry.name.clone(), value)]);
            if let Err(error) = check(&pair) {
                reader.complaints.push(Complaint::new(entry.at, error.to_string()));
            }
            pairs.extend(pair);
        }
        Some(pairs)
    }

    /// The list of that name; empty if it is not there.
    pub(super) fn list(&self, reader: &mut Reader<'_>, name: &str) -> Vec<&'a Node> {
        match self.get(name).map(|node| (node, &node.content)) {
            None => Vec::new(),
            Some((_, Content::List(items))) => items.iter().map(|item| &**item).collect(),
            Some((node, _)) => {
                reader.complain(node, format!("`{name}` is a list, found {}", node.what()));
                Vec::new()
            }
        }
    }
}

/// A text, and nothing that merely looks like one.
pub(super) fn text(reader: &mut Reader<'_>, name: &str, node: &Node) -> Option<String> {
    if let Content::Text(text) = &node.content {
        return Some(text.clone());
    }
    let quote = match node.content {
        Content::Number(_) | Content::Bool(_) => " (hint: put it in quotes)",
        _ => "",
    };
    reader.complain(node, format!("`{name}` is text, found {}{quote}", node.what()));
    None
}

/// Complains if something is not as it must be.
pub(super) fn checked<T>(reader: &mut Reader<'_>, node: &Node, result: Result<T, nimbus_core::Invalid>) -> Option<T> {
    result.map_err(|error| reader.complain(node, error.to_string())).ok()
}
