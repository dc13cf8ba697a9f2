//! Names of objects that exist on behalf of others: computed, so that a restart finds what it published before.

use std::fmt::Write as _;

use nimbus_wire::v1;
use sha2::{Digest as _, Sha256};

use crate::{
    Draft, Kind, Object, ObjectKey, Spec, Uid,
    id::{MAX_ID, is_name_char},
};

/// Hex digits at the end of a name: among a million names, the chance that any two of them have the same ones is less
/// than one half even if all parents and roles are called alike, and publishing checks for that.
const HASH_DIGITS: usize = 10;

/// Of the role: the rest is for the name of the parent, which people look for first.
const MAX_ROLE: usize = 64;

/// What the two hashes are of; a third use would get a third one.
const NAME_USE: &str = "nimbus derived name";
const UID_USE: &str = "nimbus derived uid";

// === impl Object ===

impl<K: Spec> Object<K> {
    /// An object on behalf of another, in a certain role: its name and uid follow from the parent and the role, and are
    /// the same after every restart. Another life of the parent has other children.
    ///
    /// It lies in the namespace of its parent.
    pub fn derived<P>(parent: &Object<P>, role: &str, spec: K) -> Draft<K> {
        let (key, uid) = (&parent.meta.key, &parent.meta.uid);
        let owner = v1::Owner {
            kind: key.kind().to_string(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            uid: uid.to_string(),
        };
        Draft {
            uid: Some(derived_uid(key, uid, role, &K::kind())),
            owner: Some(owner),
            ..Draft::new(&derived_name(key, uid, role), spec).in_namespace(key.namespace())
        }
    }
}

/// `<parent>-<role>-<hash>`: the first two for people, the hash so that no two are the same.
fn derived_name(parent: &ObjectKey, uid: &Uid, role: &str) -> String {
    let mut name: String = role.chars().take(MAX_ROLE).map(|c| if is_name_char(c) { c } else { '-' }).collect();
    if !name.is_empty() {
        name.insert(0, '-');
    }
    let room = MAX_ID - HASH_DIGITS - 1 - name.len();
    // Names are ASCII: each byte is a character.
    name.insert_str(0, &parent.name()[..parent.name().len().min(room)]);
    name.push('-');
    let parts = [NAME_USE, parent.kind().as_str(), parent.namespace(), uid.as_str(), role];
    name.push_str(&hash(parts)[..HASH_DIGITS]);
    name
}

fn derived_uid(parent: &ObjectKey, uid: &Uid, role: &str, child: &Kind) -> Uid {
    let parts = [UID_USE, parent.kind().as_str(), parent.namespace(), uid.as_str(), role, child.as_str()];
    Uid::new(&hash(parts)).expect("hex digits are a name")
}

/// Of the parts, each framed by its length; 32 hex digits.
fn hash<const N: usize>(parts: [&str; N]) -> String {
    let mut state = Sha256::new();
    for part in parts {
        state.update((part.len() as u64).to_le_bytes());
        state.update(part);
    }
    state.finalize()[..16].iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes everything");
        hex
    })
}

#[cfg(test)]
mod tests;
