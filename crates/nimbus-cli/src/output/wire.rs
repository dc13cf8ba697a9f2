//! Answers of the bus as JSON.

use std::sync::LazyLock;

use nimbus_wire::v1;
use prost::Name;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(v1::FILE_DESCRIPTOR_SET).expect("our own descriptors are well-formed"));

/// A message of the contract in the JSON form of protobuf, with every field, and with numbers as numbers. Not for
/// messages with objects in them: those are manifests, so that their specs are readable and their secrets are not.
pub(crate) fn wire_json<M: Name>(message: &M) -> Value {
    let descriptor = POOL.get_message_by_name(&M::full_name()).expect("a message of the contract");
    let message = DynamicMessage::decode(descriptor, &*message.encode_to_vec()).expect("the same message");
    let options = SerializeOptions::new().skip_default_fields(false).stringify_64_bit_integers(false);
    let json = message.serialize_with_options(serde_json::value::Serializer, &options);
    json.expect("the contract is known, and nothing is packed in it")
}
