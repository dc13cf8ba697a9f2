//! Refuses files that no compiler writes, before they are linked.
//!
//! Linking trusts its input: some malformed files would panic there, and some small ones would take quadratic time or
//! memory.

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, MessageOptions,
    ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

/// Names of files and full names of symbols. A symbol repeats the name of everything around it, so without a limit a
/// small file could name gigabytes.
const MAX_NAME: usize = 512;

/// Fields, values, ranges and the like of one message, enum or service. Linking compares some of them pairwise; the
/// largest messages that people write have a tenth of this.
const MAX_MEMBERS: usize = 5_000;

/// Checks one file; the error says what is wrong with it.
pub(super) fn verify(file: &FileDescriptorProto) -> Result<(), String> {
    if file.name().is_empty() || file.name().len() > MAX_NAME {
        return Err(format!("the name of a file has 1 to {MAX_NAME} bytes"));
    }
    match file.syntax.as_deref() {
        None | Some("proto2" | "proto3") => {}
        Some("editions") => return Err("editions are not supported (hint: use syntax proto3)".to_owned()),
        Some(syntax) => return Err(format!("unknown syntax {syntax:?}")),
    }
    if !file.package().is_empty() {
        file.package().split('.').try_for_each(identifier)?;
    }
    let scope = file.package();
    members(scope, &[file.extension.len()])?;
    file.extension.iter().try_for_each(|extension| field(scope, extension))?;
    file.message_type.iter().try_for_each(|inner| message(scope, inner))?;
    file.enum_type.iter().try_for_each(|inner| enumeration(scope, inner))?;
    file.service.iter().try_for_each(|inner| service(scope, inner))
}

/// Recursion is safe: decoding allows only a hundred levels.
fn message(scope: &str, message: &DescriptorProto) -> Result<(), String> {
    let scope = &join(scope, message.name())?;
    members(scope, &[message.field.len(), message.oneof_decl.len(), message.extension.len()])?;
    members(scope, &[message.reserved_range.len(), message.reserved_name.len(), message.extension_range.len()])?;
    if message.options.as_ref().is_some_and(MessageOptions::map_entry) {
        map_entry(scope, message)?;
    }
    message.field.iter().chain(&message.extension).try_for_each(|inner| field(scope, inner))?;
    message.oneof_decl.iter().try_for_each(|inner| join(scope, inner.name()).map(drop))?;
    message.enum_type.iter().try_for_each(|inner| enumeration(scope, inner))?;
    message.nested_type.iter().try_for_each(|inner| self::message(scope, inner))
}

fn field(scope: &str, field: &FieldDescriptorProto) -> Result<(), String> {
    join(scope, field.name()).map(drop)
}

fn enumeration(scope: &str, enumeration: &EnumDescriptorProto) -> Result<(), String> {
    let scope = &join(scope, enumeration.name())?;
    members(scope, &[enumeration.value.len(), enumeration.reserved_range.len(), enumeration.reserved_name.len()])?;
    enumeration.value.iter().try_for_each(|value| join(scope, value.name()).map(drop))
}

fn service(scope: &str, service: &ServiceDescriptorProto) -> Result<(), String> {
    let scope = &join(scope, service.name())?;
    members(scope, &[service.method.len()])?;
    service.method.iter().try_for_each(|method| join(scope, method.name()).map(drop))
}

/// Readers of maps rely on a key and a value.
fn map_entry(name: &str, entry: &DescriptorProto) -> Result<(), String> {
    let [key, value] = entry.field.as_slice() else {
        return Err(format!("map entry {name} has not exactly two fields"));
    };
    let singular = key.label() == Label::Optional && value.label() == Label::Optional;
    let hashable =
        !matches!(key.r#type(), Type::Double | Type::Float | Type::Bytes | Type::Message | Type::Group | Type::Enum);
    if key.number() == 1 && value.number() == 2 && singular && hashable && key.type_name().is_empty() {
        Ok(())
    } else {
        Err(format!("map entry {name} is not a key of a simple type and a value"))
    }
}

fn members(name: &str, counts: &[usize]) -> Result<(), String> {
    match counts.iter().find(|&&count| count > MAX_MEMBERS) {
        Some(count) => Err(format!("{name} has {count} members of one sort, the limit is {MAX_MEMBERS}")),
        None => Ok(()),
    }
}

fn join(scope: &str, name: &str) -> Result<String, String> {
    identifier(name)?;
    if scope.len() + 1 + name.len() > MAX_NAME {
        return Err(format!("a full name has more than {MAX_NAME} bytes"));
    }
    Ok(if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") })
}

fn identifier(name: &str) -> Result<(), String> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic());
    if first && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
        return Ok(());
    }
    let shown: String = name.chars().take(64).collect();
    Err(format!("{shown:?} is not an identifier"))
}
