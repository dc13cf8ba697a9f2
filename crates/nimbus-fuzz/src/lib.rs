//! What must hold for every decoder of foreign bytes, whatever the bytes.
//!
//! A [`Target`] is a function that is given anything, and panics if something does not hold that should. `tests/fuzz` has
//! a program of cargo-fuzz for each, which searches for such bytes; the tests of this crate give each the files of its
//! corpus and thousands of variations of them, always the same. `docs/TESTING.md` says how both are run.

#![allow(clippy::unwrap_used, reason = "a check may panic: that is how it says what does not hold")]

mod cache;
pub mod corpus;
mod descriptors;
mod files;
mod filters;
mod frames;
mod http2;
mod hush;
mod manifests;
mod mutation;
mod requests;
mod schema;
mod script;
mod selectors;
mod specs;
mod store;

pub use mutation::mutate;

/// A decoder, and what must hold for it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its program in `tests/fuzz/fuzz_targets`, and of the directory of its corpus.
    pub name: &'static str,
    /// Panics if something does not hold.
    pub check: fn(&[u8]),
    /// How many variations of each file of the corpus the tests try: fewer where one takes longer.
    pub variations: u32,
}

/// All of them.
pub const TARGETS: [Target; 13] = [
    Target { name: "cache_file", check: cache::file, variations: 200 },
    Target { name: "cache_rows", check: cache::rows, variations: 5_000 },
    Target { name: "descriptors", check: descriptors::check, variations: 200 },
    Target { name: "filters", check: filters::check, variations: 5_000 },
    Target { name: "frames", check: frames::check, variations: 5_000 },
    Target { name: "http2", check: http2::check, variations: 400 },
    Target { name: "manifests", check: manifests::check, variations: 2_000 },
    Target { name: "requests", check: requests::check, variations: 400 },
    Target { name: "selectors", check: selectors::check, variations: 5_000 },
    Target { name: "specs", check: specs::check, variations: 2_000 },
    Target { name: "store_file", check: store::file, variations: 200 },
    Target { name: "store_log", check: store::log, variations: 200 },
    Target { name: "store_rows", check: store::rows, variations: 5_000 },
];

/// Checks the target of that name.
///
/// # Panics
/// If something does not hold, or there is no such target.
pub fn check(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("there is no target {name}")).check)(bytes);
}
