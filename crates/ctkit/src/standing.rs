//! The status that the kit writes: how a controller fares with an object, and what it computed.

mod code;
mod ready;
mod write;

use nimbus_core::Spec;
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;

pub(crate) use crate::standing::{
    code::{Code, READY},
    ready::Ready,
    write::{Seen, Write, write, write_packed},
};

/// What was found where something was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// What was expected.
    Ours,
    /// Nothing.
    Absent,
    /// A message of another type, or bytes that are none; this is what they say they are.
    Foreign(String),
}

/// Reads the status of an object, and says what was found. Whatever is not ours counts as nothing.
pub(crate) fn read(status: &[u8]) -> (v1::Standing, Found) {
    if status.is_empty() {
        return (v1::Standing::default(), Found::Absent);
    }
    match Any::decode(status) {
        Ok(any) => unpack(&any),
        Err(_) => (v1::Standing::default(), Found::Foreign(String::new())),
    }
}

/// The detail, and what was found. Whatever is not an `S` counts as the default.
pub(crate) fn detail<S: Spec>(standing: &v1::Standing) -> (S, Found) {
    standing.detail.as_ref().map_or_else(|| (S::default(), Found::Absent), unpack)
}

/// Sets the detail, and says whether it differs from before. What is equal keeps its bytes: a message with maps has many
/// encodings, and another one would be a change for everybody who reads it.
pub(crate) fn set_detail<S: Spec + PartialEq>(standing: &mut v1::Standing, new: &S) -> bool {
    let (old, found) = detail::<S>(standing);
    let differs = found != Found::Ours || old != *new;
    if differs {
        standing.detail = Some(new.pack());
    }
    differs
}

/// Edits the detail, beginning with what is there or else with the default, and says whether it differs from before.
pub(crate) fn edit_detail<S: Spec + PartialEq>(standing: &mut v1::Standing, edit: impl FnOnce(&mut S)) -> bool {
    let (mut new, _) = detail::<S>(standing);
    edit(&mut new);
    set_detail(standing, &new)
}

/// Sets a condition, and says whether anything differs from before: there is one of each type, in their order, and none
/// gives way to one that speaks of an older generation.
pub(crate) fn set_condition(standing: &mut v1::Standing, new: v1::Condition) -> bool {
    if standing.conditions.is_empty() {
        standing.conditions.push(new);
        return true;
    }
    let newest = standing
        .conditions
        .iter()
        .filter(|old| old.r#type == new.r#type)
        .map(|old| old.generation)
        .max();
    let mut after = standing.conditions.clone();
    if newest.is_none_or(|newest| newest <= new.generation) {
        after.retain(|old| old.r#type != new.r#type);
        after.push(new);
    }
    // Of those that somebody else left twice, the newest stays.
    after.sort_by(|a, b| (&a.r#type, b.generation).cmp(&(&b.r#type, a.generation)));
    after.dedup_by(|b, a| a.r#type == b.r#type);
    let differs = after != standing.conditions;
    standing.conditions = after;
    differs
}

fn unpack<S: Spec>(any: &Any) -> (S, Found) {
    let found = any.type_url.rsplit_once('/').map_or(&*any.type_url, |(_, name)| name);
    match S::decode(&*any.value) {
        Ok(message) if found == S::full_name() => (message, Found::Ours),
        _ => (S::default(), Found::Foreign(found.to_owned())),
    }
}

#[cfg(test)]
mod tests;
