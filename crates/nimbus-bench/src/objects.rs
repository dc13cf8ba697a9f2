//! The objects that are published.

use nimbus_wire::v1;

/// The kind of everything that is published here. Nobody registers it: the bus takes it as bytes.
pub(crate) const KIND: &str = "bench.v1.Item";

/// The name of the n-th object.
pub(crate) fn name(number: u64) -> String {
    format!("item-{number:06}")
}

/// The name of the n-th agent.
pub(crate) fn agent(number: u64) -> String {
    format!("agent-{number:05}")
}

/// What is in the spec of an object; each version has other bytes.
pub(crate) fn payload(version: u64, bytes: usize) -> Vec<u8> {
    version.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// An object for everybody; each version has another spec of the same size.
pub(crate) fn object(name: String, version: u64, bytes: usize) -> v1::Object {
    let value = payload(version, bytes);
    let spec = prost_types::Any { type_url: format!("type.googleapis.com/{KIND}"), value };
    v1::Object { name, spec: Some(spec), ..v1::Object::default() }
}

/// The same as a publisher would write it that survives a restart of the bus: its uid and generation are its own.
pub(crate) fn own_object(name: String, version: u64, bytes: usize) -> v1::Object {
    v1::Object { uid: format!("uid-{name}"), generation: version, ..object(name, version, bytes) }
}

/// The same for one agent only.
pub(crate) fn targeted_object(agent: String, number: u64, version: u64, bytes: usize) -> v1::Object {
    let name = format!("{agent}-{number}");
    let to = v1::audience::To::Agents(v1::Agents { ids: vec![agent] });
    v1::Object { audience: Some(v1::Audience { to: Some(to) }), ..own_object(name, version, bytes) }
}
