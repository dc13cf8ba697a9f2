//! How much users can register.

/// How much users can register. What exceeds a limit is refused by name and changes nothing.
#[derive(Debug, Clone)]
pub struct SchemaLimits {
    /// Bytes of one descriptor set.
    pub max_set_bytes: usize,
    /// Bytes of all files that users registered.
    pub max_total_bytes: usize,
    /// Files that users registered.
    pub max_files: usize,
    /// Registered kinds.
    pub max_kinds: usize,
}

/// The default limit of gRPC messages: a larger set would not arrive.
const MAX_SET_BYTES: usize = 4 << 20;

/// Linked descriptors take some forty times their encoded size, and 75 ms per megabyte to link: this bounds them to
/// 350 MB, twice that while one snapshot replaces another, and a registration to most of a second.
const MAX_TOTAL_BYTES: usize = 8 << 20;

/// A large code base has some hundreds of proto files; every registration links all of them again.
const MAX_FILES: usize = 2_000;

/// With `kinds` left out every top-level message is a kind, so that one set easily has hundreds.
const MAX_KINDS: usize = 10_000;

// === impl SchemaLimits ===

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            max_set_bytes: MAX_SET_BYTES,
            max_total_bytes: MAX_TOTAL_BYTES,
            max_files: MAX_FILES,
            max_kinds: MAX_KINDS,
        }
    }
}
