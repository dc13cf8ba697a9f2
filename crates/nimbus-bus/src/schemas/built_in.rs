//! The files that every bus knows.

use std::{collections::HashMap, sync::Arc};

use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_types::{DescriptorProto, FileDescriptorProto};

use crate::schemas::{
    error::SchemaError,
    file::{File, Files, split},
};

/// The contract of the bus and of the services beside it, each with the directory of its files.
///
/// Tonic's crates name their files without a directory. Users would collide with a `status.proto` of their own, and
/// with the real `google/rpc/status.proto`, so these get the names that everybody imports them by.
const SETS: [(&str, &[u8]); 5] = [
    ("", nimbus_wire::v1::FILE_DESCRIPTOR_SET),
    ("grpc/health/v1/", tonic_health::pb::FILE_DESCRIPTOR_SET),
    ("grpc/reflection/v1/", tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET),
    ("grpc/reflection/v1alpha/", tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET),
    ("google/rpc/", tonic_types::pb::FILE_DESCRIPTOR_SET),
];

/// The built-in files: `google.protobuf` first, so that all use the same version of it.
pub(super) fn files() -> Result<Files, SchemaError> {
    let mut files = Files::new();
    let mut add = |bytes, proto: &FileDescriptorProto| {
        if !files.contains_key(proto.name()) {
            let file = File::new(bytes, proto, true)?;
            files.insert(Arc::clone(&file.name), Arc::new(file));
        }
        Ok(())
    };
    for file in DescriptorPool::global()
        .files()
        .filter(|file| file.name().starts_with("google/protobuf/"))
    {
        add(file.encode_to_vec().into(), file.file_descriptor_proto())?;
    }
    for (directory, set) in SETS {
        for (bytes, mut proto) in split(set)? {
            if proto.name().contains('/') {
                add(bytes, &proto)?;
            } else {
                let name = if directory.starts_with("grpc/reflection/") { "reflection.proto" } else { proto.name() };
                proto.name = Some(format!("{directory}{name}"));
                add(proto.encode_to_vec().into(), &proto)?;
            }
        }
    }
    Ok(files)
}

/// Whether a user's copy of a built-in file can be ignored in favour of ours.
///
/// Copies differ by the compiler and its version, and older or newer releases have fewer or more fields; only a field
/// that means something else is an error. What ours lacks and the user needs is missed when the files are linked.
pub(super) fn verify_copy(ours: &File, theirs: &FileDescriptorProto) -> Result<(), SchemaError> {
    let conflict = |reason| SchemaError::BuiltIn { file: ours.name.to_string(), reason };
    if ours.package != theirs.package() {
        return Err(conflict(format!("package {} is not {}", theirs.package(), ours.package)));
    }
    let proto = FileDescriptorProto::decode(ours.bytes.clone()).map_err(|error| conflict(error.to_string()))?;
    match conflicting_field(theirs.package(), &proto.message_type, &theirs.message_type) {
        Some(field) => Err(conflict(format!("field {field} differs from that of the bus"))),
        None => Ok(()),
    }
}

fn conflicting_field(scope: &str, ours: &[DescriptorProto], theirs: &[DescriptorProto]) -> Option<String> {
    let ours: HashMap<_, _> = ours.iter().map(|message| (message.name(), message)).collect();
    theirs.iter().find_map(|theirs| {
        let ours = ours.get(theirs.name())?;
        let scope = format!("{scope}.{}", theirs.name());
        let numbers: HashMap<_, _> = ours.field.iter().map(|field| (field.number(), field)).collect();
        let conflict = theirs.field.iter().find(|theirs| {
            numbers.get(&theirs.number()).is_some_and(|ours| {
                (ours.r#type(), ours.label(), ours.type_name()) != (theirs.r#type(), theirs.label(), theirs.type_name())
            })
        });
        match conflict {
            Some(field) => Some(format!("{scope}.{}", field.name())),
            None => conflicting_field(&scope, &ours.nested_type, &theirs.nested_type),
        }
    })
}
