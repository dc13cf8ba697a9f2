//! Objects of a source as users see them.

use nimbus_core::{Meta, Object, ObjectError, Spec};
use nimbus_store::Record;
use prost::Message as _;
use prost_types::Any;

/// Reads an object whose spec is a `K`.
pub(crate) fn typed<K: Spec>(record: &Record) -> Result<Object<K>, ObjectError> {
    let meta = meta(record);
    let decode = |source| ObjectError::Decode { key: record.key().clone(), source };
    let bytes = record.spec();
    if bytes.is_empty() {
        return Err(ObjectError::NoSpec(meta.key));
    }
    let any = Any::decode(bytes).map_err(decode)?;
    let spec = unpack::<K>(&any).ok_or_else(|| ObjectError::Type {
        key: record.key().clone(),
        found: any.type_url.clone(),
        expected: K::kind(),
    })?;
    Ok(Object::new(meta, spec.map_err(decode)?))
}

/// Everything about an object but its spec and status.
pub(crate) fn meta(record: &Record) -> Meta {
    let mut meta = Meta::new(record.key().clone(), record.uid().clone(), record.generation(), record.revision());
    meta.labels = record.labels().clone();
    meta.refs = record.refs().clone();
    meta.owner = record.owner().cloned();
    meta.manager = Some(record.manager().clone());
    meta.annotations = record.annotations();
    meta.finalizers = record.finalizers();
    meta.deleting = record.is_deleting();
    meta
}

/// Reads a message of type `M`, if that is what was packed.
pub(crate) fn unpack<M: Spec>(any: &Any) -> Option<Result<M, prost::DecodeError>> {
    let name = any.type_url.rsplit_once('/').map_or(&*any.type_url, |(_, name)| name);
    (name == M::full_name()).then(|| M::decode(&*any.value))
}
