//! Names of objects that exist on behalf of others: computed, so that a restart finds what it published before.

use arrayvec::{ArrayString, ArrayVec};
use sha2::{Digest as _, Sha256};

use crate::{
    Draft, Kind, Object, ObjectKey, Owner, Spec, Uid,
    draft::Name,
    id::{MAX_ID, is_name, is_name_char},
};

/// Hex digits at the end of a name: among a million names, the chance that any two of them have the same ones is less
/// than one half even if all parents and roles are called alike, and publishing checks for that.
const HASH_DIGITS: usize = 10;

/// Of the role: the rest is for the name of the parent, which people look for first.
const MAX_ROLE: usize = 64;

/// What the hash is of; another use would get another one.
const USE: &str = "nimbus derived";

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Of a parent and a role, which gives the name; and then of the kind of the child as well, which gives the uid.
struct Hash {
    state: Sha256,
    /// Goes into the state as a whole: to begin and to end there costs more than most parts are long.
    waiting: ArrayVec<u8, WAITING>,
}

/// Most parents and roles, framed, fit into this together.
const WAITING: usize = 256;

// === impl Object ===

impl<K: Spec> Object<K> {
    /// An object on behalf of another, in a certain role: its name and uid follow from the parent and the role, and are
    /// the same after every restart. Another life of the parent has other children.
    ///
    /// It lies in the namespace of its parent.
    pub fn derived<P>(parent: &Object<P>, role: &str, spec: K) -> Draft<K> {
        let (key, uid) = (&parent.meta.key, &parent.meta.uid);
        let mut hash = Hash::new([USE, key.kind().as_str(), key.namespace(), uid.as_str(), role]);
        let (kind, name) = (K::kind(), derived_name(key.name(), role, &mut hash));
        let own = ObjectKey::new(kind.clone(), key.namespace(), &name).expect("a derived name is one");
        Draft {
            uid: Some(derived_uid(hash, &kind)),
            owner: Some(Owner::new(key.clone(), uid.clone())),
            ..Draft::named(Name::Key(own), spec)
        }
    }
}

/// `<parent>-<role>-<hash>`: the first two for people, the hash so that no two are the same.
fn derived_name(parent: &str, role: &str, hash: &mut Hash) -> ArrayString<MAX_ID> {
    // Characters are bytes at least.
    let role = if role.len() <= MAX_ROLE { role } else { first(role, MAX_ROLE) };
    let digits = hash.digits();
    // What is not ASCII becomes one character that is.
    let room = MAX_ID - HASH_DIGITS - 1 - role.chars().count() - usize::from(!role.is_empty());
    // Names are ASCII: each byte is a character.
    let parent = &parent[..parent.len().min(room)];
    let mut name = ArrayString::new();
    name.push_str(parent);
    if !role.is_empty() {
        name.push('-');
        if is_name(role) {
            name.push_str(role);
        } else {
            role.chars().for_each(|c| name.push(if is_name_char(c) { c } else { '-' }));
        }
    }
    name.push('-');
    name.push_str(&text(&digits)[..HASH_DIGITS]);
    name
}

/// The first characters of a text.
fn first(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

fn derived_uid(mut hash: Hash, child: &Kind) -> Uid {
    hash.part(child.as_str());
    Uid::new(text(&hash.digits())).expect("hex digits are a name")
}

// === impl Hash ===

impl Hash {
    /// Of the parts, each framed by its length.
    fn new<const N: usize>(parts: [&str; N]) -> Self {
        let mut hash = Self { state: Sha256::new(), waiting: ArrayVec::new() };
        parts.into_iter().for_each(|part| hash.part(part));
        hash
    }

    fn part(&mut self, part: &str) {
        self.bytes(&(part.len() as u64).to_le_bytes());
        self.bytes(part.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.waiting.try_extend_from_slice(bytes).is_ok() {
            return;
        }
        self.flush();
        if self.waiting.try_extend_from_slice(bytes).is_err() {
            self.state.update(bytes);
        }
    }

    fn flush(&mut self) {
        self.state.update(&self.waiting);
        self.waiting.clear();
    }

    /// 32 hex digits.
    fn digits(&mut self) -> [u8; 32] {
        self.flush();
        let bytes = self.state.clone().finalize();
        let mut digits = [0; 32];
        for (two, byte) in digits.chunks_exact_mut(2).zip(&bytes[..16]) {
            two.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        digits
    }
}

fn text(digits: &[u8; 32]) -> &str {
    std::str::from_utf8(digits).expect("hex digits are ASCII")
}

#[cfg(test)]
mod tests;
