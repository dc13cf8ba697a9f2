//! What users write, and what becomes of it.

use ctkit::Object;

/// What users write: rules for some zones.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Policy {
    #[prost(string, repeated, tag = "1")]
    pub(crate) zones: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
}

impl prost::Name for Policy {
    const NAME: &'static str = "Policy";
    const PACKAGE: &'static str = "kit.v1";
}

/// What agents get: the rules of one zone.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Rules {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
}

impl prost::Name for Rules {
    const NAME: &'static str = "Rules";
    const PACKAGE: &'static str = "kit.v1";
}

/// What a policy says of itself.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PolicyStatus {
    #[prost(uint32, tag = "1")]
    pub(crate) zones: u32,
    #[prost(string, tag = "2")]
    pub(crate) note: String,
}

impl prost::Name for PolicyStatus {
    const NAME: &'static str = "PolicyStatus";
    const PACKAGE: &'static str = "kit.v1";
}

/// What policies refer to.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Zone {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

impl prost::Name for Zone {
    const NAME: &'static str = "Zone";
    const PACKAGE: &'static str = "kit.v1";
}

// === impl Rules ===

impl Rules {
    /// The text of a policy, for one zone.
    pub(crate) fn of(policy: &Object<Policy>, zone: &str) -> Self {
        Self { zone: zone.to_owned(), text: policy.spec.text.clone() }
    }
}
