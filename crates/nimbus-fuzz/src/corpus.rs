//! What the search begins with: real examples of everything, made by the programs that are tested, and nasty cases.

mod calls;
mod descriptors;
mod files;
mod http2;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use crate::requests;

/// The files of one target, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Every file of the corpus, by target and name.
pub fn all() -> BTreeMap<&'static str, Files> {
    BTreeMap::from([
        ("cache_file", files::damages()),
        ("cache_rows", files::cache_rows()),
        ("descriptors", descriptors::sets()),
        ("filters", text::filters()),
        ("frames", calls::frames()),
        ("http2", http2::connections()),
        ("manifests", text::manifests()),
        ("requests", calls::scripts()),
        ("selectors", text::selectors()),
        ("specs", descriptors::specs()),
        ("store_file", files::damages()),
        ("store_log", files::store_log()),
        ("store_rows", files::store_rows()),
    ])
}

/// Writes it below a directory. What else is there stays: bytes that once broke something are kept beside it.
///
/// # Errors
/// If a file cannot be written.
pub fn write(directory: &Path) -> io::Result<usize> {
    let mut written = 0;
    for (target, files) in all() {
        let directory = directory.join(target);
        fs::create_dir_all(&directory)?;
        for (name, bytes) in files {
            fs::write(directory.join(name), bytes)?;
            written += 1;
        }
    }
    Ok(written)
}

/// The calls that no script of the corpus makes so that they are accepted.
pub fn calls_that_are_always_refused() -> BTreeSet<&'static str> {
    let all: BTreeSet<&str> = requests::PATHS.iter().map(String::as_str).collect();
    all.difference(&calls::accepted()).copied().collect()
}

fn named<'a, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (&'a str, B)>) -> Files {
    files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect()
}
