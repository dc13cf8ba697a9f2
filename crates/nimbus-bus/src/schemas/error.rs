//! Why a registration was refused.

use thiserror::Error;

/// Why a registration was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A limit of [`SchemaLimits`](crate::SchemaLimits) is exceeded.
    #[error("{what}: {found} is more than the limit of {limit}")]
    TooLarge {
        /// The name that metrics and errors use for the limit.
        name: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How much there would be.
        found: usize,
        /// How much there may be.
        limit: usize,
    },

    /// The bytes are not a `google.protobuf.FileDescriptorSet`.
    #[error("not a google.protobuf.FileDescriptorSet: {reason}")]
    NotADescriptorSet {
        /// What is wrong with the bytes.
        reason: String,
    },

    /// A file of the set is malformed, or cannot be linked with the others.
    #[error("{file}: {reason}")]
    BadFile {
        /// Name of the file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A file imports one that is neither in the set nor known.
    #[error("{file}: import {import} is missing (hint: write the descriptor set with --include_imports)")]
    MissingImport {
        /// Name of the file.
        file: String,
        /// Name of the file that it imports.
        import: String,
    },

    /// A file contradicts one that is built into the bus.
    #[error("{file}: {reason}, which is built in and cannot be replaced")]
    BuiltIn {
        /// Name of the file.
        file: String,
        /// What it contradicts.
        reason: String,
    },

    /// A registered kind is no longer defined.
    #[error("kind {kind} of {file} is registered and would vanish")]
    KindVanishes {
        /// The kind.
        kind: String,
        /// Name of the file that defined it.
        file: String,
    },

    /// What was written with the registered version of a kind could not be read with the new one.
    #[error("kind {kind}: field {field} (number {number}) changes from {was} to {now}; use a new number instead")]
    Incompatible {
        /// The kind.
        kind: String,
        /// Path of the field in it.
        field: String,
        /// Number of the field.
        number: u32,
        /// Its type as registered.
        was: String,
        /// Its new type.
        now: String,
    },

    /// A named kind is not a message that the bus knows.
    #[error("kind {kind} is not a message of the descriptor set{}", did_you_mean(.nearest))]
    UnknownKind {
        /// The kind.
        kind: String,
        /// A message with a name like it.
        nearest: Option<String>,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}
