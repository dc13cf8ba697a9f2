//! Objects of a source as users see them.

use nimbus_core::{Meta, Object, ObjectError, Spec};
use nimbus_store::Record;
use prost::Message as _;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_types::Any;

/// Reads an object whose spec is a `K`.
pub(crate) fn typed<K: Spec>(record: &Record) -> Result<Object<K>, ObjectError> {
    let meta = meta(record);
    let decode = |source| ObjectError::Decode { key: record.key().clone(), source };
    if let Some(message) = record.message()
        && *record.kind() == K::kind()
    {
        return Ok(Object::new(meta, K::decode(message).map_err(decode)?));
    }
    let bytes = record.spec_bytes();
    if bytes.is_empty() {
        return Err(ObjectError::NoSpec(meta.key));
    }
    if let Some((url, value)) = parts(&bytes)
        && name(url) == K::kind().as_str().as_bytes()
    {
        return Ok(Object::new(meta, K::decode(value).map_err(decode)?));
    }
    let any = Any::decode(&*bytes).map_err(decode)?;
    let spec = unpack::<K>(&any).ok_or_else(|| ObjectError::Type {
        key: record.key().clone(),
        found: any.type_url.clone(),
        expected: K::kind(),
    })?;
    Ok(Object::new(meta, spec.map_err(decode)?))
}

/// Everything about an object but its spec and status.
pub(crate) fn meta(record: &Record) -> Meta {
    let mut meta = Meta::new(record.key().clone(), record.to_uid(), record.generation(), record.revision());
    meta.labels = record.labels().clone();
    meta.refs = record.refs().clone();
    meta.owner = record.owner();
    meta.manager = Some(record.manager().clone());
    meta.annotations = record.annotations();
    meta.finalizers = record.finalizers();
    meta.deleting = record.is_deleting();
    meta
}

/// The type and the value of a packed message where they lie, if it is encoded as everybody does it.
fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (url, rest) = field(bytes, 1)?;
    let (value, rest) = field(rest, 2)?;
    rest.is_empty().then_some((url, value))
}

/// The bytes of a field that comes first, and what comes after it.
fn field(mut bytes: &[u8], number: u32) -> Option<(&[u8], &[u8])> {
    let (found, WireType::LengthDelimited) = decode_key(&mut bytes).ok()? else { return None };
    let len = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
    (found == number).then(|| bytes.split_at_checked(len))?
}

fn name(url: &[u8]) -> &[u8] {
    url.rsplit(|byte| *byte == b'/').next().unwrap_or(url)
}

/// Reads a message of type `M`, if that is what was packed.
pub(crate) fn unpack<M: Spec>(any: &Any) -> Option<Result<M, prost::DecodeError>> {
    let name = any.type_url.rsplit_once('/').map_or(&*any.type_url, |(_, name)| name);
    (name == M::full_name()).then(|| M::decode(&*any.value))
}
