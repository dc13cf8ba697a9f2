//! The owner of an object, without what is known from the object.

use bytes::BufMut as _;
use nimbus_core::{ObjectKey, Owner};
use nimbus_wire::v1;

use crate::record::{
    encode::{OWNER, put_field, put_header, put_len, take_len, text_len},
    family::{Family, OwnerKinds},
    uid::{Number, PackedUid},
};

/// The owner of an object, where its parts lie. Most are the parents of derived children, of which only the uid is news:
///
/// ```text
/// in which forms the parts are, a byte
/// kind: nothing if its family has a number for it; or length · text
/// namespace: nothing if it is that of the object; or length · text
/// name: its length, a byte, if the name of the object begins with it; or length · text
/// uid: a number; or text
/// ```
///
/// A text may be any: an owner that comes from outside is kept as it is.
pub(crate) struct PackedOwner<'a> {
    /// Kind, namespace and name.
    names: [&'a [u8]; 3],
    uid: PackedUid<'a>,
}

/// Of an encoded owner, its uid.
const UID: u32 = 4;

/// The part of the forms that is the number of the kind.
const KIND: u8 = 7;

/// Stands for such a number where the kind has none.
const KIND_HERE: u8 = KIND;
const _: () = assert!(OwnerKinds::MOST <= KIND_HERE as usize);

/// The namespace is that of the object.
const SAME_NAMESPACE: u8 = 1 << 3;

/// The name of the object begins with the name.
const NAME_IS_PREFIX: u8 = 1 << 4;

/// The uid is the digits of a number.
const UID_DIGITS: u8 = 1 << 5;

/// The same with dashes.
const UID_DASHED: u8 = 1 << 6;

// === impl PackedOwner ===

impl<'a> PackedOwner<'a> {
    /// Appends the owner of the object that has this name, to be read where it lies.
    pub(crate) fn pack(buffer: &mut Vec<u8>, owner: &Owner, key: &ObjectKey, family: &Family) {
        let [kind, namespace, name, uid] = owner.texts();
        let at = buffer.len();
        // Known when everything else is.
        buffer.put_u8(0);
        let mut forms = family.owner_kinds.number_of(kind).unwrap_or_else(|| {
            put_part(buffer, kind.as_bytes());
            KIND_HERE
        });
        if namespace == key.namespace() {
            forms |= SAME_NAMESPACE;
        } else {
            put_part(buffer, namespace.as_bytes());
        }
        if key.name().starts_with(name) {
            forms |= NAME_IS_PREFIX;
            buffer.put_u8(u8::try_from(name.len()).expect("names of objects are limited"));
        } else {
            put_part(buffer, name.as_bytes());
        }
        match PackedUid::new(uid.as_bytes(), &mut Number::default()) {
            PackedUid::Text(text) => buffer.put_slice(text),
            PackedUid::Digits(number) => {
                forms |= UID_DIGITS;
                buffer.put_slice(number);
            }
            PackedUid::Dashed(number) => {
                forms |= UID_DASHED;
                buffer.put_slice(number);
            }
        }
        buffer[at] = forms;
    }

    /// Reads what that wrote, for the object of that namespace and name.
    #[inline(always)]
    pub(crate) fn read(packed: &'a [u8], namespace: &'a [u8], name: &'a [u8], family: &'a Family) -> Self {
        let (&forms, mut rest) = packed.split_first().expect("there is an owner");
        let kind = match forms & KIND {
            KIND_HERE => take_part(&mut rest),
            number => family.owner_kinds.get(number).as_bytes(),
        };
        let namespace = if forms & SAME_NAMESPACE == 0 { take_part(&mut rest) } else { namespace };
        let name = if forms & NAME_IS_PREFIX == 0 {
            take_part(&mut rest)
        } else {
            let (len, after) = rest.split_first().expect("the length of the name");
            rest = after;
            &name[..usize::from(*len)]
        };
        let number = || rest.try_into().expect("the uid comes last");
        let uid = match forms & (UID_DIGITS | UID_DASHED) {
            UID_DIGITS => PackedUid::Digits(number()),
            UID_DASHED => PackedUid::Dashed(number()),
            _ => PackedUid::Text(rest),
        };
        Self { names: [kind, namespace, name], uid }
    }

    /// Whether it is this one.
    pub(crate) fn is(&self, owner: &Owner) -> bool {
        let [kind, namespace, name, uid] = owner.texts().map(str::as_bytes);
        self.names == [kind, namespace, name] && self.uid.is(uid)
    }

    /// The owner as it travels.
    pub(crate) fn to_wire(&self) -> v1::Owner {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it was text before");
        let [kind, namespace, name] = self.names.map(text);
        v1::Owner { kind, namespace, name, uid: self.uid.with_text(text) }
    }

    /// Appends it as an encoded field of the object.
    pub(crate) fn put(&self, buffer: &mut Vec<u8>) {
        put_header(buffer, OWNER, self.len());
        (1..).zip(self.names).for_each(|(field, name)| put_field(buffer, field, name));
        self.uid.with_text(|uid| put_field(buffer, UID, uid));
    }

    /// Bytes of the encoded owner, without the key and the length of the field.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        let names: usize = (1..).zip(self.names).map(|(field, name)| text_len(field, name.len())).sum();
        names + text_len(UID, self.uid.len())
    }
}

fn put_part(buffer: &mut Vec<u8>, text: &[u8]) {
    put_len(buffer, text.len());
    buffer.put_slice(text);
}

/// Takes a part that begins there off the front.
fn take_part<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (len, after) = take_len(rest);
    let (text, after) = after.split_at(len);
    *rest = after;
    text
}
