//! The kinds of the demo: policies that users write, and what the agents of a zone get of them.

#[allow(missing_docs, unreachable_pub, reason = "generated; the proto file is the documentation")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/demo.v1.rs"));
}

pub(crate) use generated::{NetworkPolicy, NetworkPolicyStatus, ZoneRules};

/// The descriptors, so that tools such as grpcurl read and write specs as JSON.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/demo_v1.bin"));

/// What users write.
pub(crate) const POLICY: &str = "demo.v1.NetworkPolicy";

/// What agents get.
pub(crate) const RULES: &str = "demo.v1.ZoneRules";

#[cfg(test)]
mod tests;
