//! What is published: objects whose every byte is known to whoever wrote them.

use nimbus_wire::v1::{self, audience::To};
use prost::Message as _;
use prost_types::{
    Any, DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use rand::{RngExt as _, rngs::SmallRng};

/// The kind of all objects.
pub(crate) const KIND: &str = "powercut.v1.Thing";

/// Values of the label that agents are chosen by, and of the field `zone`.
pub(crate) const ZONES: [&str; 2] = ["a", "b"];

/// The agent that objects may be for by name.
pub(crate) const NAMED_AGENT: &str = "named";

/// Some objects are larger than a page of the file.
const MAX_PADDING: usize = 6000;

/// The spec of an object.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Thing {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    /// Never the same again for one publisher.
    #[prost(uint64, tag = "2")]
    pub(crate) number: u64,
    #[prost(bytes = "vec", tag = "3")]
    padding: Vec<u8>,
}

/// A name of the kind.
pub(crate) fn key(name: &str) -> v1::Key {
    v1::Key { kind: KIND.to_owned(), namespace: String::new(), name: name.to_owned() }
}

/// An object as it will be listed, but for its revision. A new life of a name has another `uid`.
pub(crate) fn object(publisher: &str, name: &str, uid: &str, number: u64, rng: &mut SmallRng) -> v1::Object {
    let zone = ZONES[rng.random_range(0..ZONES.len())];
    let padding = if rng.random_bool(0.1) { rng.random_range(0..MAX_PADDING) } else { rng.random_range(0..200) };
    let thing = Thing { zone: zone.to_owned(), number, padding: vec![number as u8; padding] };
    let tier = if rng.random() { "web" } else { "db" };
    v1::Object {
        kind: KIND.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        generation: number,
        labels: [("tier".to_owned(), tier.to_owned())].into(),
        manager: publisher.to_owned(),
        spec: Some(pack(&thing)),
        audience: audience(zone, rng),
        ..v1::Object::default()
    }
}

/// A status that says `number`.
pub(crate) fn status(number: u64) -> Any {
    pack(&Thing { number, ..Thing::default() })
}

/// The value of the field `zone` of an object.
pub(crate) fn zone(object: &v1::Object) -> Option<String> {
    Some(Thing::decode(&*object.spec.as_ref()?.value).ok()?.zone)
}

/// Descriptors of the kind of all objects, or of another one that nobody publishes.
pub(crate) fn descriptors(message: &str) -> Vec<u8> {
    let field = |name: &str, number, of: Type| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(of.into()),
        ..FieldDescriptorProto::default()
    };
    let message_type = DescriptorProto {
        name: Some(message.to_owned()),
        field: vec![field("zone", 1, Type::String), field("number", 2, Type::Uint64), field("padding", 3, Type::Bytes)],
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some(format!("powercut/v1/{}.proto", message.to_lowercase())),
        package: Some("powercut.v1".to_owned()),
        message_type: vec![message_type],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

fn pack(thing: &Thing) -> Any {
    Any { type_url: format!("type.googleapis.com/{KIND}"), value: thing.encode_to_vec() }
}

fn audience(zone: &str, rng: &mut SmallRng) -> Option<v1::Audience> {
    let to = match rng.random_range(0..10) {
        0..4 => return None,
        4..8 => To::Selector(format!("zone={zone}")),
        _ => To::Agents(v1::Agents { ids: vec![NAMED_AGENT.to_owned()] }),
    };
    Some(v1::Audience { to: Some(to) })
}
