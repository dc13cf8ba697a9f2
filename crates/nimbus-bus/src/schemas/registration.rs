//! From one snapshot to the next.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use nimbus_core::nearest;

use crate::schemas::{
    built_in,
    compat::Compat,
    error::SchemaError,
    file::{File, Files, split},
    limits::SchemaLimits,
    snapshot::Snapshot,
};

/// Extensions are searched one by one while options are read; real code bases define some dozens.
const MAX_EXTENSIONS: usize = 2_000;

/// The files of a set, sorted by what becomes of them.
struct Incoming {
    /// All but copies of built-in files.
    all: Files,
    /// Those that are new or have other content than the file of this name that is known.
    changed: Files,
}

/// The snapshot after a registration, or none if nothing changes, and the kinds that the call stands for.
pub(super) fn register(
    current: &Snapshot,
    limits: &SchemaLimits,
    set: &[u8],
    kinds: &[String],
) -> Result<(Option<Snapshot>, Vec<String>), SchemaError> {
    within("schema_bytes", "bytes of the descriptor set", set.len(), limits.max_set_bytes)?;
    let incoming = Incoming::new(current, set)?;

    let wanted: BTreeSet<&str> = if kinds.is_empty() {
        incoming.default_kinds(current).collect()
    } else {
        kinds.iter().map(String::as_str).collect()
    };
    let unchanged = incoming.changed.is_empty() && wanted.iter().all(|kind| current.kind(kind).is_some());
    if unchanged {
        return Ok((None, wanted.into_iter().map(ToOwned::to_owned).collect()));
    }

    let new_kinds = wanted.iter().filter(|kind| current.kind(kind).is_none()).count();
    within("schema_kinds", "registered kinds", current.kinds().len() + new_kinds, limits.max_kinds)?;

    let mut files = current.files.clone();
    supersede(&mut files, &incoming)?;
    files.extend(incoming.changed.clone());
    let users = || files.values().filter(|file| !file.built_in);
    within("schema_files", "registered files", users().count(), limits.max_files)?;
    within(
        "schemas_bytes",
        "bytes of all registered files",
        users().map(|file| file.bytes.len()).sum(),
        limits.max_total_bytes,
    )?;
    within(
        "schema_extensions",
        "extensions in all registered files",
        users().map(|file| file.extensions).sum(),
        MAX_EXTENSIONS,
    )?;

    let mut next = Snapshot::link(current.version + 1, files)?;
    keep_kinds(current, &mut next)?;
    for kind in &wanted {
        if !next.add_kind(kind) {
            let names = incoming.all.values().chain(next.user_files()).flat_map(|file| &file.messages);
            let nearest = nearest(kind, names.map(String::as_str));
            return Err(SchemaError::UnknownKind { kind: (*kind).to_owned(), nearest });
        }
    }
    next.declare()?;
    Ok((Some(next), wanted.into_iter().map(ToOwned::to_owned).collect()))
}

/// Removes the files that define what the changed ones define under other names, as happens when include roots differ
/// or a file moves.
fn supersede(files: &mut Files, incoming: &Incoming) -> Result<(), SchemaError> {
    let changed = incoming.changed.values();
    let defined: HashMap<&str, &Arc<File>> =
        changed.flat_map(|file| file.symbols().map(move |symbol| (symbol, file))).collect();
    let mut removed: BTreeMap<Arc<str>, (&str, &Arc<File>)> = BTreeMap::new();
    for file in files.values().filter(|file| !incoming.all.contains_key(&file.name)) {
        let Some((symbol, by)) = file.symbols().find_map(|symbol| defined.get_key_value(symbol)) else { continue };
        if file.built_in {
            let reason = format!("it defines {symbol} of {}", file.name);
            return Err(SchemaError::BuiltIn { file: by.name.to_string(), reason });
        }
        removed.insert(Arc::clone(&file.name), (symbol, by));
    }
    files.retain(|name, _| !removed.contains_key(name));

    let kept = files.values().filter(|file| !incoming.changed.contains_key(&file.name));
    for file in kept.chain(incoming.changed.values()) {
        if let Some((import, (symbol, by))) = file.imports.iter().find_map(|name| removed.get_key_value(name.as_str()))
        {
            let reason = format!("it defines {symbol}, and so does {import}, which {} imports", file.name);
            return Err(SchemaError::BadFile { file: by.name.to_string(), reason });
        }
    }
    Ok(())
}

/// Carries the registered kinds over, if what was written with them can still be read.
fn keep_kinds(current: &Snapshot, next: &mut Snapshot) -> Result<(), SchemaError> {
    let mut compat = Compat::default();
    for (kind, was) in current.messages() {
        if !next.add_kind(kind) {
            let file = was.parent_file().name().to_owned();
            return Err(SchemaError::KindVanishes { kind: kind.to_owned(), file });
        }
        if let Some(now) = next.kind(kind) {
            compat.check(was, now)?;
        }
    }
    Ok(())
}

fn within(name: &'static str, what: &'static str, found: usize, limit: usize) -> Result<(), SchemaError> {
    if found > limit { Err(SchemaError::TooLarge { name, what, found, limit }) } else { Ok(()) }
}

// === impl Incoming ===

impl Incoming {
    fn new(current: &Snapshot, set: &[u8]) -> Result<Self, SchemaError> {
        let mut all = Files::new();
        let mut changed = Files::new();
        for (bytes, proto) in split(set)? {
            let known = current.files.get(proto.name());
            if let Some(ours) = known.filter(|file| file.built_in) {
                built_in::verify_copy(ours, &proto)?;
                continue;
            }
            let file = Arc::new(File::new(bytes, &proto, false)?);
            if known.is_none_or(|known| known.bytes != file.bytes) {
                changed.insert(Arc::clone(&file.name), Arc::clone(&file));
            }
            let twice = all.insert(Arc::clone(&file.name), Arc::clone(&file));
            if twice.is_some_and(|other| other.bytes != file.bytes) {
                let reason = "it is in the set twice, with different content".to_owned();
                return Err(SchemaError::BadFile { file: file.name.to_string(), reason });
            }
        }
        Ok(Self { all, changed })
    }

    /// The top-level messages of files that are new or changed, and those of the others that are kinds already.
    fn default_kinds<'a>(&'a self, current: &Snapshot) -> impl Iterator<Item = &'a str> {
        let built_in: HashSet<&str> =
            current.files.values().filter(|file| file.built_in).map(|file| &*file.package).collect();
        let names = self
            .all
            .values()
            .filter(|file| !is_google(&file.package) && !built_in.contains(&*file.package));
        let names = names.flat_map(|file| file.messages.iter().map(move |message| (file, message.as_str())));
        let names = names.filter(|(file, name)| self.changed.contains_key(&file.name) || current.kind(name).is_some());
        names.map(|(_, name)| name).collect::<Vec<_>>().into_iter()
    }
}

fn is_google(package: &str) -> bool {
    package == "google" || package.starts_with("google.")
}
