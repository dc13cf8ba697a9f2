//! One file of descriptors, and how it comes out of a set.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, ServiceDescriptorProto,
};

use crate::schemas::{
    error::SchemaError,
    shape,
    wire::{Raw, Records},
};

/// Files by name.
pub(crate) type Files = BTreeMap<Arc<str>, Arc<File>>;

/// One file of descriptors.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: Arc<str>,
    /// As its compiler wrote it. Decoding and encoding again would lose extensions, such as custom options.
    pub(crate) bytes: Bytes,
    pub(crate) package: String,
    pub(crate) imports: Vec<String>,
    /// Those of the imports that are visible to who imports this file.
    pub(crate) public_imports: Vec<String>,
    /// Full names of the top-level messages.
    pub(crate) messages: Vec<String>,
    /// Full names of everything else at the top level.
    pub(crate) others: Vec<String>,
    /// Extensions, at all levels.
    pub(crate) extensions: usize,
    /// Part of the bus: never replaced.
    pub(crate) built_in: bool,
}

/// The files of an encoded `FileDescriptorSet`, with their bytes unchanged, beside what they decode to.
pub(super) fn split(set: &[u8]) -> Result<Vec<(Bytes, FileDescriptorProto)>, SchemaError> {
    /// Field number of `FileDescriptorSet.file`.
    const FILE: u32 = 1;

    let mut files = Vec::new();
    for record in Records::new(set) {
        let record = record.map_err(|error| SchemaError::NotADescriptorSet {
            reason: format!("at byte {}: {}", error.at, error.what),
        })?;
        if let (FILE, Raw::Len(bytes)) = (record.number, record.value) {
            let proto = FileDescriptorProto::decode(bytes).map_err(|error| SchemaError::NotADescriptorSet {
                reason: format!("file at byte {}: {error}", record.start),
            })?;
            files.push((Bytes::copy_from_slice(bytes), proto));
        }
    }
    Ok(files)
}

// === impl File ===

impl File {
    pub(super) fn new(bytes: Bytes, proto: &FileDescriptorProto, built_in: bool) -> Result<Self, SchemaError> {
        let bad = |reason| SchemaError::BadFile { file: shown(proto.name()), reason };
        shape::verify(proto).map_err(bad)?;
        let public_imports = proto.public_dependency.iter().map(|&index| {
            let import = usize::try_from(index).ok().and_then(|index| proto.dependency.get(index));
            import.cloned().ok_or_else(|| bad(format!("public import {index} does not exist")))
        });
        let package = proto.package();
        let full_name = |name: &str| if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") };
        let enums = proto.enum_type.iter().map(EnumDescriptorProto::name);
        let services = proto.service.iter().map(ServiceDescriptorProto::name);
        let extensions = proto.extension.iter().map(FieldDescriptorProto::name);
        Ok(Self {
            name: proto.name().into(),
            bytes,
            package: package.to_owned(),
            imports: proto.dependency.clone(),
            public_imports: public_imports.collect::<Result<_, _>>()?,
            messages: proto.message_type.iter().map(|message| full_name(message.name())).collect(),
            others: enums.chain(services).chain(extensions).map(full_name).collect(),
            extensions: proto.extension.len() + proto.message_type.iter().map(count_extensions).sum::<usize>(),
            built_in,
        })
    }

    /// Full names of everything at the top level.
    pub(super) fn symbols(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().chain(&self.others).map(String::as_str)
    }
}

fn count_extensions(message: &DescriptorProto) -> usize {
    message.extension.len() + message.nested_type.iter().map(count_extensions).sum::<usize>()
}

fn shown(name: &str) -> String {
    if name.is_empty() { "a file without a name".to_owned() } else { name.chars().take(128).collect() }
}
