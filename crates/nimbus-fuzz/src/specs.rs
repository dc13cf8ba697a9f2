//! Specs of registered kinds.

use std::collections::BTreeSet;

use nimbus_core::{Kind, ObjectKey};
use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

use crate::schema::{KINDS, POOL, SCHEMAS};

/// Ways into [`KINDS`], good and bad.
const PATHS: [&[&str]; 12] = [
    &["zone"],
    &["priority"],
    &["rules"],
    &["text"],
    &["inner", "text"],
    &["inner", "inner", "tier"],
    &["right", "zone"],
    &["by_name"],
    &["name"],
    &["wrapped"],
    &["s64"],
    &["nothing"],
];

/// What the bus accepts can be decoded by everybody, and what it reads of it is what is in it.
pub(crate) fn check(bytes: &[u8]) {
    let Some((first, spec)) = bytes.split_first() else { return };
    let kind = KINDS[usize::from(*first) % KINDS.len()];
    let checked = SCHEMAS.check(kind, spec);
    let message = POOL.get_message_by_name(kind).unwrap();
    let decoded = DynamicMessage::decode(message, spec);
    match (&checked, &decoded) {
        (Ok(()), Err(error)) => panic!("{kind} is accepted, and cannot be decoded: {error}"),
        (Err(reason), _) => assert!(reason.contains(kind), "refused without a reason: {reason}"),
        (Ok(()), Ok(_)) => {}
    }
    if let Ok(message) = &decoded {
        refers(kind, spec, message, checked.is_ok());
    }
    for path in PATHS {
        let found = SCHEMAS.field(kind, spec, path);
        if found.is_some() {
            assert!(SCHEMAS.check_field(kind, path).is_ok(), "{path:?} cannot be read, and was");
        }
        if let (Ok(()), Ok(message)) = (&checked, &decoded)
            && let Some(expected) = plain(message, path)
        {
            assert_eq!(found.as_deref(), Some(&*expected), "{path:?} of {message}");
        }
    }
}

/// What a spec refers to is what is in it. What cannot be decoded by others may be refused, and nothing else comes of it.
fn refers(kind: &str, spec: &[u8], message: &DynamicMessage, is_checked: bool) {
    let key = ObjectKey::new(Kind::new(kind).unwrap(), "", "it").unwrap();
    let found = SCHEMAS.references(&key, spec);
    let mut named = BTreeSet::new();
    names(message, &mut named);
    match found {
        Ok(found) => {
            let found: BTreeSet<String> = found.iter().map(|reference| reference.to.to_string()).collect();
            assert!(!is_checked || found == named, "{found:?} of {message}");
        }
        Err(reason) => assert!(!reason.is_empty(), "refused without a reason"),
    }
}

/// The objects that a message names, and those in it.
fn names(message: &DynamicMessage, named: &mut BTreeSet<String>) {
    for (field, value) in message.fields() {
        let mut note = |kind: &str, name: &str| {
            named.insert(format!("{kind}/{}", name.trim_start_matches('/')));
        };
        match (field.full_name(), value) {
            ("fuzz.Everything.policy", Value::String(name)) if !name.is_empty() => note("fuzz.Policy", name),
            ("fuzz.Everything.zones", Value::List(all)) => {
                all.iter().filter_map(Value::as_str).for_each(|name| note("fuzz.Zone", name));
            }
            _ => {}
        }
        match value {
            Value::Message(inner) => names(inner, named),
            Value::List(all) => all.iter().filter_map(Value::as_message).for_each(|inner| names(inner, named)),
            Value::Map(all) => all.values().filter_map(Value::as_message).for_each(|inner| names(inner, named)),
            _ => {}
        }
    }
}

/// The value of a field of the message itself, where text is all that it takes to show it.
fn plain(message: &DynamicMessage, path: &[&str]) -> Option<String> {
    let [name] = path else { return None };
    let field = message.descriptor().get_field_by_name(name)?;
    if field.supports_presence() && !message.has_field(&field) {
        return None;
    }
    match &*message.get_field(&field) {
        Value::String(text) => Some(text.clone()),
        Value::U32(number) => Some(number.to_string()),
        Value::I64(number) => Some(number.to_string()),
        _ => None,
    }
}
