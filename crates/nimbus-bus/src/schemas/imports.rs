//! The graph of imports.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use prost::{Message as _, encoding::WireType};
use prost_types::FileDescriptorProto;

use crate::schemas::{
    error::SchemaError,
    file::{File, Files},
    wire::Records,
};

/// Fails if an import is missing, or if files import each other in a circle.
pub(super) fn verify(files: &Files) -> Result<(), SchemaError> {
    let mut waiting_for: HashMap<&str, usize> = HashMap::with_capacity(files.len());
    let mut imported_by: HashMap<&str, Vec<&str>> = HashMap::with_capacity(files.len());
    for file in files.values() {
        for import in &file.imports {
            if !files.contains_key(import.as_str()) {
                return Err(SchemaError::MissingImport { file: file.name.to_string(), import: import.clone() });
            }
            imported_by.entry(import).or_default().push(&file.name);
        }
        waiting_for.insert(&file.name, file.imports.len());
    }

    let mut ready: Vec<&str> = waiting_for.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    while let Some(name) = ready.pop() {
        waiting_for.remove(name);
        for importer in imported_by.get(name).into_iter().flatten() {
            if let Some(count) = waiting_for.get_mut(importer) {
                *count -= 1;
                if *count == 0 {
                    ready.push(importer);
                }
            }
        }
    }
    match waiting_for.into_keys().min() {
        Some(file) => Err(SchemaError::BadFile {
            file: file.to_owned(),
            reason: "it imports itself, or files that import each other in a circle".to_owned(),
        }),
        None => Ok(()),
    }
}

/// `file` and all that it imports, directly or not: the file first, then by distance.
pub(crate) fn closure<'a>(files: &'a Files, file: &'a Arc<File>) -> Vec<&'a Arc<File>> {
    reach(files, file, |file| &file.imports)
}

/// The bytes of `file` for linking, with every import that it may use named by itself.
///
/// The linker of prost-reflect 0.16 does not follow public imports of public imports, unless it has seen a file before:
/// then it follows them again, in exponential time, or without end in a circle. So it is not shown any.
///
/// Where things stand in a file is for errors to say, and takes most of the memory; the files of the bus have none.
pub(super) fn to_be_linked(files: &Files, file: &Arc<File>) -> Vec<u8> {
    /// Field numbers of `FileDescriptorProto`.
    const SOURCE_CODE_INFO: u32 = 9;
    const PUBLIC_DEPENDENCY: u32 = 10;

    let mut visible: HashSet<&str> = file.imports.iter().map(String::as_str).collect();
    let mut dependency = Vec::new();
    for import in file.imports.iter().filter_map(|name| files.get(name.as_str())) {
        for public in reach(files, import, |file| &file.public_imports) {
            if visible.insert(&public.name) {
                dependency.push(public.name.to_string());
            }
        }
    }

    let mut bytes = Vec::with_capacity(file.bytes.len());
    let is_wanted = |number| number != PUBLIC_DEPENDENCY && !(file.built_in && number == SOURCE_CODE_INFO);
    for record in Records::new(&file.bytes).flatten().filter(|record| is_wanted(record.number)) {
        bytes.extend_from_slice(&file.bytes[record.start..record.end]);
    }
    // Repeated fields may be appended to.
    bytes.extend(FileDescriptorProto { dependency, ..Default::default() }.encode_to_vec());
    bytes
}

/// Encodes one file into a `FileDescriptorSet`.
pub(super) fn append_to_set(set: &mut Vec<u8>, file: &[u8]) {
    prost::encoding::encode_key(1, WireType::LengthDelimited, set);
    prost::encoding::encode_varint(file.len() as u64, set);
    set.extend_from_slice(file);
}

fn reach<'a>(files: &'a Files, start: &'a Arc<File>, edges: impl Fn(&'a File) -> &'a [String]) -> Vec<&'a Arc<File>> {
    let mut seen: HashSet<&str> = HashSet::from([&*start.name]);
    let mut queue = VecDeque::from([start]);
    let mut found = Vec::new();
    while let Some(file) = queue.pop_front() {
        found.push(file);
        for next in edges(file).iter().filter_map(|name| files.get(name.as_str())) {
            if seen.insert(&next.name) {
                queue.push_back(next);
            }
        }
    }
    found
}
