//! Everything that is known at one time.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::schemas::{
    built_in,
    declared::Declared,
    error::SchemaError,
    file::{File, Files},
    imports,
};

/// Everything that is known at one time. Immutable, and cheap to clone.
#[derive(Clone)]
pub(crate) struct Snapshot {
    /// Rises with every snapshot.
    pub(crate) version: u64,
    pub(crate) files: Files,
    /// All files, linked.
    pub(crate) pool: DescriptorPool,
    kinds: BTreeMap<Arc<str>, MessageDescriptor>,
    /// The references that specs of these kinds state by themselves.
    pub(crate) declared: Arc<Declared>,
}

// === impl Snapshot ===

impl Snapshot {
    /// What every bus knows.
    pub(super) fn built_in() -> Self {
        // It never changes, and linking it takes some milliseconds: one is enough for all buses of a process.
        static BUILT_IN: LazyLock<Snapshot> = LazyLock::new(|| {
            let files = built_in::files().expect("the built-in files are well-formed, a test reads them");
            Snapshot::link(0, files).expect("the built-in files fit together, a test links them")
        });
        BUILT_IN.clone()
    }

    /// Links `files`; no kinds yet.
    pub(super) fn link(version: u64, files: Files) -> Result<Self, SchemaError> {
        imports::verify(&files)?;
        let mut set = Vec::with_capacity(files.values().map(|file| file.bytes.len() + 16).sum());
        for file in files.values() {
            imports::append_to_set(&mut set, &imports::to_be_linked(&files, file));
        }
        let pool = DescriptorPool::decode(set.as_slice()).map_err(|error| SchemaError::BadFile {
            file: error.file().unwrap_or("descriptor set").to_owned(),
            reason: match error.line() {
                Some(line) => format!("line {}: {error}", line + 1),
                None => error.to_string(),
            },
        })?;
        Ok(Self { version, files, pool, kinds: BTreeMap::new(), declared: Arc::default() })
    }

    /// Makes a message a kind. False if there is no such message.
    pub(super) fn add_kind(&mut self, kind: &str) -> bool {
        let message = self.pool.get_message_by_name(kind).filter(|message| !message.is_map_entry());
        let Some(message) = message else { return false };
        self.kinds.insert(kind.into(), message);
        true
    }

    /// Looks for references, when all kinds are there.
    pub(super) fn declare(&mut self) -> Result<(), SchemaError> {
        self.declared = Arc::new(Declared::new(&self.pool, self.messages())?);
        Ok(())
    }

    pub(super) fn kind(&self, kind: &str) -> Option<&MessageDescriptor> {
        self.kinds.get(kind)
    }

    pub(super) fn kinds(&self) -> impl ExactSizeIterator<Item = &str> {
        self.kinds.keys().map(|kind| &**kind)
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = (&str, &MessageDescriptor)> {
        self.kinds.iter().map(|(kind, message)| (&**kind, message))
    }

    /// The files that users registered.
    pub(super) fn user_files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.files.values().filter(|file| !file.built_in)
    }
}
