//! What is around a spec: who, for whom, on whose behalf.

use nimbus_core::{Annotations, Kind, Labels, Selector};
use nimbus_wire::v1::{self, audience::To};
use prost_reflect::Value;
use prost_types::Any;

use crate::{
    document::{Content, Node},
    intake::{
        Basis, Intake,
        members::{Members, checked, text},
    },
    schemas::{Reader, TYPE_PREFIX, decode_base64, encode},
};

/// A manifest that is being read.
pub(super) struct Envelope<'r, 's> {
    pub(super) reader: &'r mut Reader<'s>,
    pub(super) intake: &'r Intake,
}

#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "kind", "namespace", "name", "labels", "annotations", "owner", "refs", "audience", "spec", "specBytes", "status",
    "bus",
];

#[rustfmt::skip]
const BUS_FIELDS: &[&str] = &[
    "uid", "generation", "revision", "manager", "observedGeneration", "finalizers", "deleting", "refs", "unknownFields",
];

/// What a placeholder for a whole spec is kept as.
pub(crate) const SPEC_BYTES: &str = "specBytes";

// === impl Envelope ===

impl Envelope<'_, '_> {
    /// Reads a manifest. Nothing if it does not even say which object it is about; there may be complaints otherwise, too.
    pub(super) fn read(&mut self, node: &Node) -> Option<(v1::Object, Option<Basis>)> {
        let reader = &mut *self.reader;
        let members = Members::of(reader, "a manifest", node, FIELDS)?;
        let key = key(reader, &members);
        let labels = members.pairs(reader, "labels", |pair| Labels::new(pair).map(drop)).unwrap_or_default();
        let annotations = members.pairs(reader, "annotations", |pair| Annotations::new(pair.clone()).map(drop));
        let owner = members.get("owner").and_then(|node| owner(reader, node));
        let refs = members
            .list(reader, "refs")
            .into_iter()
            .filter_map(|node| reference(reader, node))
            .collect();
        let audience = members.get("audience").and_then(|node| audience(reader, node));
        let basis = members.get("bus").and_then(|node| basis(reader, node));
        let kind = members.get("kind").and_then(Node::as_text).filter(|kind| Kind::new(kind).is_ok());
        let spec = kind.and_then(|kind| self.spec(node, &members, kind));
        let v1::Key { kind, namespace, name } = key?;
        let object = v1::Object {
            kind,
            namespace,
            name,
            labels,
            annotations: annotations.unwrap_or_default(),
            owner,
            refs,
            audience,
            spec,
            ..v1::Object::default()
        };
        Some((object, basis))
    }

    fn spec(&mut self, whole: &Node, members: &Members<'_>, kind: &str) -> Option<Any> {
        let reader = &mut *self.reader;
        let value = match (members.get("spec"), members.get(SPEC_BYTES)) {
            (None, None) => {
                reader.complain(whole, "a manifest needs `spec` (hint: one without any fields is `spec: {}`)");
                return None;
            }
            (Some(_), Some(bytes)) => {
                reader.complain(bytes, "`spec` and `specBytes` exclude each other");
                return None;
            }
            (Some(spec), None) => {
                let Some(descriptor) = self.intake.schemas.message(kind) else {
                    let node = members.get("kind").expect("it was found");
                    let message = self.unknown_kind(kind);
                    self.reader.complain(node, message);
                    return None;
                };
                encode(&reader.message(spec, &descriptor)?)
            }
            (None, Some(bytes)) => match reader.placeholder(bytes, SPEC_BYTES) {
                Some(kept) => match kept? {
                    Value::Bytes(bytes) => bytes.to_vec(),
                    _ => return None,
                },
                None => {
                    let text = text(reader, SPEC_BYTES, bytes)?;
                    let decoded = decode_base64(&text);
                    if decoded.is_none() {
                        reader.complain(bytes, "`specBytes` is bytes, and this is no base64");
                    }
                    decoded?
                }
            },
        };
        Some(Any { type_url: format!("{TYPE_PREFIX}{kind}"), value })
    }

    fn unknown_kind(&self, kind: &str) -> String {
        if self.intake.kinds.infos().iter().any(|info| info.kind == kind) {
            return format!(
                "nobody has registered {kind}, so its spec cannot be read (hint: register it, or write `specBytes`)"
            );
        }
        match self.intake.kinds.nearest(kind) {
            Some(near) => format!("kind `{kind}` is not known to the bus; did you mean `{near}`?"),
            None => format!("kind `{kind}` is not known to the bus (hint: `nimbus kinds` lists those that are)"),
        }
    }
}

/// Reads only which object it is about.
pub(super) fn read_key(reader: &mut Reader<'_>, node: &Node) -> Option<v1::Key> {
    let members = Members::of(reader, "a manifest", node, FIELDS)?;
    key(reader, &members)
}

fn key(reader: &mut Reader<'_>, members: &Members<'_>) -> Option<v1::Key> {
    let kind = members.required(reader, "a manifest", "kind");
    let namespace = members.name(reader, "namespace");
    let name = members.required(reader, "a manifest", "name").and_then(|_| members.name(reader, "name"));
    let kind = kind.filter(|kind| {
        let node = members.get("kind").expect("it was found");
        checked(reader, node, Kind::new(kind)).is_some()
    });
    Some(v1::Key { kind: kind?, namespace: namespace?, name: name? })
}

fn owner(reader: &mut Reader<'_>, node: &Node) -> Option<v1::Owner> {
    let members = Members::of(reader, "an owner", node, &["kind", "namespace", "name", "uid"])?;
    Some(v1::Owner {
        kind: members.required(reader, "an owner", "kind")?,
        namespace: members.name(reader, "namespace")?,
        name: members.required(reader, "an owner", "name").and_then(|_| members.name(reader, "name"))?,
        uid: members.text(reader, "uid")?,
    })
}

fn reference(reader: &mut Reader<'_>, node: &Node) -> Option<v1::Reference> {
    let members = Members::of(reader, "a reference", node, &["kind", "namespace", "name", "weak"])?;
    let weak = match members.get("weak").map(|node| (node, &node.content)) {
        None => false,
        Some((_, Content::Bool(weak))) => *weak,
        Some((node, _)) => {
            reader.complain(node, format!("`weak` is bool, found {}", node.what()));
            false
        }
    };
    Some(v1::Reference {
        kind: members.required(reader, "a reference", "kind")?,
        namespace: members.name(reader, "namespace")?,
        name: members
            .required(reader, "a reference", "name")
            .and_then(|_| members.name(reader, "name"))?,
        weak,
        declared: false,
    })
}

fn audience(reader: &mut Reader<'_>, node: &Node) -> Option<v1::Audience> {
    let members = Members::of(reader, "an audience", node, &["selector", "agents"])?;
    if let (Some(_), Some(agents)) = (members.get("selector"), members.get("agents")) {
        reader.complain(agents, "`selector` and `agents` exclude each other");
        return None;
    }
    if let Some(node) = members.get("selector") {
        let selector = text(reader, "selector", node)?;
        checked(reader, node, Selector::parse(&selector))?;
        return Some(v1::Audience { to: Some(To::Selector(selector)) });
    }
    let mut ids = Vec::new();
    for node in members.list(reader, "agents") {
        let id = text(reader, "agents", node)?;
        checked(reader, node, nimbus_core::check_name("agent", &id))?;
        ids.push(id);
    }
    Some(v1::Audience { to: Some(To::Agents(v1::Agents { ids })) })
}

/// What the bus said of the version that the manifest was made from.
fn basis(reader: &mut Reader<'_>, node: &Node) -> Option<Basis> {
    let members = Members::of(reader, "`bus`", node, BUS_FIELDS)?;
    if let [first, ..] = members.list(reader, "unknownFields")[..] {
        reader.complain(
            first,
            "the spec lacks fields that the schema does not know, and publishing it would remove them \
             (hint: register the schema that has them and get the object again, or remove `unknownFields`)",
        );
    }
    let revision = match members.get("revision").map(|node| (node, &node.content)) {
        None => return None,
        Some((_, Content::Number(text))) if text.parse::<u64>().is_ok() => text.parse().unwrap_or_default(),
        Some((node, _)) => {
            reader.complain(node, "`revision` is a number of the bus");
            return None;
        }
    };
    Some(Basis { uid: members.text(reader, "uid")?, revision })
}
