//! From manifests in files to objects that can be published.

mod envelope;
mod members;

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use nimbus_wire::v1;

pub(crate) use crate::intake::envelope::SPEC_BYTES;
use crate::{
    client::Client,
    document::{Complaint, Content, Node, Position},
    failure::Failure,
    input::Item,
    intake::envelope::Envelope,
    kinds::Kinds,
    object_table,
    problems::Problems,
    schemas::{Kept, Reader, Schemas},
};

/// An object as a manifest wants it to be.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// What the publisher says of it; the rest is the bus's.
    pub(crate) object: v1::Object,
    /// The version that the manifest was made from, if it says so.
    pub(crate) basis: Option<Basis>,
    pub(crate) file: Rc<str>,
    pub(crate) at: Position,
}

/// A version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Basis {
    pub(crate) uid: String,
    pub(crate) revision: u64,
}

/// What it takes to read manifests: the kinds of a bus and their schemas.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) kinds: Kinds,
    pub(crate) schemas: Schemas,
}

/// Where the name of a packed message is.
const TYPE: &str = "@type";

// === impl Draft ===

impl Draft {
    /// The key of the object.
    pub(crate) fn key(&self) -> v1::Key {
        let v1::Object { kind, namespace, name, .. } = self.object.clone();
        v1::Key { kind, namespace, name }
    }

    /// The name of the object, as every command takes it.
    pub(crate) fn name(&self) -> String {
        object_table::name(&self.object)
    }
}

// === impl Intake ===

impl Intake {
    /// Fetches what these manifests need.
    pub(crate) async fn fetch(client: &Client, items: &[Item]) -> Result<Self, Failure> {
        let kinds = Kinds::fetch(client).await?;
        let mut schemas = Schemas::new();
        let mut names = BTreeSet::new();
        for item in items {
            names.extend(item.node.get("kind").and_then(|entry| entry.value.as_text()).map(str::to_owned));
            packed_types(&item.node, &mut names);
        }
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        schemas.load(client, &names).await?;
        Ok(Self { kinds, schemas })
    }

    /// Reads the manifests; what is wrong with them is added to `problems`.
    pub(crate) fn drafts(&self, items: &[Item], kept: Option<&Kept>, problems: &mut Problems) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for Item { file, node } in items {
            let mut reader = Reader::new(&self.schemas, kept);
            let read = Envelope { reader: &mut reader, intake: self }.read(node);
            reader.complaints.into_iter().for_each(|complaint| problems.complaint(file, complaint));
            let Some((object, basis)) = read else { continue };
            let draft = Draft { object, basis, file: file.clone(), at: node.at };
            if let Some(&before) = places.get(&draft.name()) {
                let Draft { file: other, at, .. } = &drafts[before];
                let message = format!("{} is also in {other}:{at}", draft.name());
                problems.complaint(file, Complaint::new(node.at, message));
            } else {
                places.insert(draft.name(), drafts.len());
                drafts.push(draft);
            }
        }
        drafts
    }
}

/// Reads only which objects the manifests are about.
pub(crate) fn keys(items: &[Item], problems: &mut Problems) -> Vec<v1::Key> {
    let schemas = Schemas::new();
    let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
    for Item { file, node } in items {
        let mut reader = Reader::new(&schemas, None);
        let key = envelope::read_key(&mut reader, node);
        reader.complaints.into_iter().for_each(|complaint| problems.complaint(file, complaint));
        keys.extend(key.filter(|key| seen.insert(object_table::key_name(key))));
    }
    keys
}

/// Collects the names of messages that are packed somewhere in it.
fn packed_types(node: &Node, names: &mut BTreeSet<String>) {
    match &node.content {
        Content::List(items) => items.iter().for_each(|item| packed_types(item, names)),
        Content::Map(entries) => {
            for entry in entries {
                if let (TYPE, Some(url)) = (&*entry.name, entry.value.as_text()) {
                    names.extend(url.rsplit('/').next().map(str::to_owned));
                }
                packed_types(&entry.value, names);
            }
        }
        _ => {}
    }
}
