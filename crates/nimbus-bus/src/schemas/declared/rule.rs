//! What a field says that its values are.

use nimbus_core::{Invalid, Kind, ObjectKey, Selector};
use nimbus_wire::v1;
use prost_reflect::{ExtensionDescriptor, FieldDescriptor, Kind as Type};

use crate::schemas::{declared::value_of, error::SchemaError, field::is_secret};

/// What a field says that its values are.
pub(super) struct Rule {
    kind: Kind,
    pub(super) weak: bool,
    selector: bool,
}

// === impl Rule ===

impl Rule {
    /// What this field says, if it says something.
    ///
    /// # Errors
    /// If it cannot be so.
    pub(super) fn of(field: &FieldDescriptor, option: &ExtensionDescriptor) -> Result<Option<Self>, SchemaError> {
        let options = field.options();
        if !options.has_extension(option) {
            return Ok(None);
        }
        let said = options.get_extension(option);
        let said = said.as_message().and_then(|said| said.transcode_to::<v1::Refers>().ok());
        let Some(v1::Refers { kind, weak, selector }) = said else {
            return Err(refused(field, "its option (nimbus.v1.refers) cannot be read"));
        };
        if !matches!(value_of(field).kind(), Type::String) {
            return Err(refused(
                field,
                "only text, lists of text, and maps whose values are text can name other objects",
            ));
        }
        if is_secret(field) {
            return Err(refused(field, "it is secret (debug_redact), and what it names would be shown"));
        }
        let kind = Kind::new(&kind).map_err(|error| refused(field, &format!("it refers to no kind: {error}")))?;
        Ok(Some(Self { kind, weak, selector }))
    }

    /// The object that a value names; none if it selects some by their labels.
    pub(super) fn named(&self, namespace: &str, text: &str) -> Result<Option<ObjectKey>, Invalid> {
        if self.selector {
            return Selector::parse(text).map(|_| None);
        }
        let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
        ObjectKey::new(self.kind.clone(), namespace, name).map(Some)
    }
}

/// A field that cannot say what it says.
pub(super) fn refused(field: &FieldDescriptor, reason: &str) -> SchemaError {
    let file = field.parent_message().parent_file().name().to_owned();
    SchemaError::BadFile { file, reason: format!("field {} cannot refer to others: {reason}", field.full_name()) }
}
