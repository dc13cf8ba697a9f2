//! The wire contract of nimbus: `nimbus.v1` messages, services and descriptors.
//!
//! The lowest layer: everything depends on it, and it depends on nothing of nimbus. `docs/PROTOCOL.md` explains what
//! the messages mean; `proto/README.md` says which changes to them are compatible.

/// The messages and services of `nimbus.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
pub mod v1 {
    tonic::include_proto!("nimbus.v1");

    /// The encoded `FileDescriptorSet` of this contract, imports included.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nimbus_v1.bin"));

    /// `nimbus/v1/options.proto`, which the schemas of users may import: what their fields can say of themselves.
    pub const OPTIONS_PROTO: &str = include_str!("nimbus/v1/options.proto");
}
