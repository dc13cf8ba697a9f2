//! Objects as people read and write them, in JSON and YAML. `docs/MANIFESTS.md` describes the form.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use nimbus_core::Selector;
use nimbus_wire::v1::{self, audience::To};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schemas::{Content, SECRET, Schemas, Secrets};

/// One object. What comes first is its publisher's; `status` and `bus` are written by others, and say nothing on input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<OwnerName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refs: Vec<ReferenceName>,
    /// Left out: everybody. Set and empty: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) audience: Option<AudienceForm>,
    /// In the JSON form of protobuf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spec: Option<Value>,
    /// Instead of `spec`, in base64, if nobody has registered the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spec_bytes: Option<String>,
    /// With its type in `@type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bus: Option<BusFacts>,
}

/// Whom an object is for: one of these, or nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AudienceForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agents: Option<Vec<String>>,
}

/// What an object needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReferenceName {
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) weak: bool,
}

/// On whose behalf an object exists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnerName {
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// What the bus says of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BusFacts {
    pub(crate) uid: String,
    pub(crate) generation: u64,
    pub(crate) revision: u64,
    pub(crate) manager: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) finalizers: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) deleting: bool,
    /// What only the spec says that the object needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refs: Vec<ReferenceName>,
    /// Numbers of fields in the spec that its schema does not know, and that this manifest lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown_fields: Vec<String>,
}

// === impl Manifest ===

impl Manifest {
    /// An object as the bus has it. Its schemas must have been loaded, or else its spec is bytes; without a schema
    /// nobody knows which of those are secret, so that they are hidden with the secrets.
    pub(crate) fn new(object: &v1::Object, schemas: &Schemas, secrets: Secrets) -> Self {
        let (spec, spec_bytes) = match object.spec.as_ref().map(|spec| schemas.read(spec, secrets)) {
            None => (None, None),
            Some(Content::Json(json)) => (Some(json), None),
            Some(Content::Bytes(bytes)) => (None, Some(base64(&bytes, secrets))),
        };
        let unknown_fields = object.spec.as_ref().map(|spec| schemas.unknown_fields(spec)).unwrap_or_default();
        let status = object.status.as_ref().map(|status| {
            let mut members = Map::from_iter([("@type".to_owned(), Value::from(status.type_url.clone()))]);
            match schemas.read(status, secrets) {
                Content::Json(Value::Object(fields)) => members.extend(fields),
                Content::Json(json) => drop(members.insert("value".to_owned(), json)),
                Content::Bytes(bytes) => drop(members.insert("@bytes".to_owned(), base64(&bytes, secrets).into())),
            }
            Value::Object(members)
        });
        Self {
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            labels: object.labels.clone(),
            annotations: object.annotations.clone(),
            owner: object.owner.as_ref().map(OwnerName::from),
            refs: references(object, false),
            audience: object.audience.as_ref().map(AudienceForm::from),
            spec,
            spec_bytes,
            status,
            bus: Some(BusFacts { unknown_fields, ..BusFacts::from(object) }),
        }
    }

    /// Only what its publisher says.
    pub(crate) fn of_publisher(mut self) -> Self {
        self.status = None;
        self.bus = None;
        self
    }

    /// With references, agents and selectors as the bus writes them, whatever the order in which somebody else did.
    pub(crate) fn in_order(mut self) -> Self {
        let key = |name: &ReferenceName| (name.kind.clone(), name.namespace.clone(), name.name.clone(), name.weak);
        self.refs.sort_by_key(key);
        self.refs.dedup();
        if let Some(AudienceForm { selector, agents }) = &mut self.audience {
            if let Some(parsed) = selector.as_ref().and_then(|selector| Selector::parse(selector).ok()) {
                *selector = Some(parsed.to_string());
            }
            if let Some(agents) = agents {
                agents.sort();
                agents.dedup();
            }
        }
        self
    }

    /// The form that is printed.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("nothing but text, numbers and JSON")
    }
}

fn base64(bytes: &[u8], secrets: Secrets) -> String {
    match secrets {
        Secrets::Hidden => SECRET.to_owned(),
        Secrets::Shown => BASE64_STANDARD.encode(bytes),
    }
}

/// What its publisher says that it needs, or what only its spec says.
fn references(object: &v1::Object, declared: bool) -> Vec<ReferenceName> {
    let meant = object.refs.iter().filter(|reference| reference.declared == declared);
    meant.map(ReferenceName::from).collect()
}

impl From<&v1::Audience> for AudienceForm {
    fn from(audience: &v1::Audience) -> Self {
        match &audience.to {
            Some(To::Selector(selector)) => Self { selector: Some(selector.clone()), agents: None },
            Some(To::Agents(agents)) => Self { selector: None, agents: Some(agents.ids.clone()) },
            None => Self { selector: None, agents: Some(Vec::new()) },
        }
    }
}

impl From<&v1::Reference> for ReferenceName {
    fn from(reference: &v1::Reference) -> Self {
        let v1::Reference { kind, namespace, name, weak, .. } = reference.clone();
        Self { kind, namespace, name, weak }
    }
}

impl From<&v1::Owner> for OwnerName {
    fn from(owner: &v1::Owner) -> Self {
        let v1::Owner { kind, namespace, name, uid } = owner.clone();
        Self { kind, namespace, name, uid }
    }
}

impl From<&v1::Object> for BusFacts {
    fn from(object: &v1::Object) -> Self {
        Self {
            uid: object.uid.clone(),
            generation: object.generation,
            revision: object.revision,
            manager: object.manager.clone(),
            observed_generation: object.observed_generation,
            finalizers: object.finalizers.clone(),
            deleting: object.deleting,
            refs: references(object, true),
            unknown_fields: Vec::new(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
