//! Fields that nobody should read over a shoulder, or find in a log.
//!
//! A schema marks them with the option that protobuf has for that: `string token = 1 [debug_redact = true];`.

use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use serde_json::{Map, Value as Json};

use crate::schemas::fields::{self, Field, Place};

/// Whether secrets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Hidden,
    Shown,
}

/// What stands for a secret.
pub(crate) const SECRET: &str = "<secret>";

/// What stands for a secret that is another one than before.
pub(crate) const OTHER_SECRET: &str = "<secret, another one>";

/// Secrets of one object, and the placeholders that stand for them while it is edited. Each has its own, so that they can be
/// moved about in the text.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<(String, Value)>);

/// Replaces secrets in the JSON form of a message, whatever their type.
pub(super) fn redact(json: &mut Json, message: &MessageDescriptor) {
    each_secret(json, message, |_, value| *value = Json::from(SECRET));
}

/// Replaces secrets in both, so that one sees where they differ, and nothing else. What was not there before differs in
/// nothing.
pub(crate) fn redact_both(old: &mut Json, new: &mut Json, compare: bool, message: &MessageDescriptor) {
    each_secret(new, message, |place, value| {
        let before = old.pointer(place.path);
        let same = !compare || before.is_none() || before == Some(value);
        *value = Json::from(if same { SECRET } else { OTHER_SECRET });
    });
    redact(old, message);
}

fn each_secret(json: &mut Json, message: &MessageDescriptor, mut replace: impl FnMut(&Place<'_>, &mut Json)) {
    fields::each(json, message, &mut |place, value| {
        let secret = place.field.is_secret();
        if secret {
            replace(place, value);
        }
        !secret
    });
}

// === impl Kept ===

impl Kept {
    /// Puts placeholders into the JSON form of a message.
    pub(crate) fn keep_secrets(&mut self, json: &mut Json, message: &MessageDescriptor) {
        each_secret(json, message, |place, value| {
            let alone = Json::Object(Map::from_iter([(place.name.to_owned(), value.clone())]));
            // It was a field of this very message, so it is one again.
            let Ok(alone) = DynamicMessage::deserialize(place.message.clone(), alone) else { return };
            let kept = match &place.field {
                Field::Own(field) => alone.get_field(field).into_owned(),
                Field::Extension(extension) => alone.get_extension(extension).into_owned(),
            };
            *value = Json::from(self.keep(place.field.full_name(), kept));
        });
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a secret that is called `of`, and gives its placeholder.
    pub(crate) fn keep(&mut self, of: &str, value: Value) -> String {
        self.0.push((of.to_owned(), value));
        format!("<secret {}>", self.0.len())
    }

    /// Whether this is a placeholder, or meant to be one.
    pub(super) fn is_placeholder(&self, text: &str) -> bool {
        let inside = text.strip_prefix("<secret").and_then(|rest| rest.strip_suffix('>'));
        inside.is_some_and(|inside| inside.trim().bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// What a placeholder stands for, if that is called `of`.
    pub(super) fn value(&self, text: &str, of: &str) -> Option<&Value> {
        let number: usize = text.strip_prefix("<secret ")?.strip_suffix('>')?.parse().ok()?;
        let (name, value) = self.0.get(number.checked_sub(1)?)?;
        (name == of).then_some(value)
    }
}
