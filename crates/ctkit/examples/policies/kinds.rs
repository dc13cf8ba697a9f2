//! The kinds of this controller: what prost-build would generate from `demo/v1/policies.proto`.

/// Rules for some zones.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NetworkPolicy {
    #[prost(string, repeated, tag = "1")]
    pub(crate) zones: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) rules: Vec<String>,
}

/// How far a policy has come.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NetworkPolicyStatus {
    #[prost(uint32, tag = "1")]
    pub(crate) agents: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) applied: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) failed: u32,
    #[prost(string, repeated, tag = "4")]
    pub(crate) failures: Vec<String>,
}

/// What the agents of one zone get.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ZoneRules {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) statements: Vec<String>,
}

impl prost::Name for NetworkPolicy {
    const NAME: &'static str = "NetworkPolicy";
    const PACKAGE: &'static str = "demo.v1";
}

impl prost::Name for NetworkPolicyStatus {
    const NAME: &'static str = "NetworkPolicyStatus";
    const PACKAGE: &'static str = "demo.v1";
}

impl prost::Name for ZoneRules {
    const NAME: &'static str = "ZoneRules";
    const PACKAGE: &'static str = "demo.v1";
}

/// The proto file that the agent has its kinds from, too.
const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../agents/zone-agent/proto");

/// The descriptors, so that tools such as grpcurl read and write specs as JSON.
pub(crate) fn descriptors() -> Result<Vec<u8>, protox::Error> {
    // Not by way of prost's own types, which know fewer options: a field marked as secret would no longer be one.
    let mut compiler = protox::Compiler::new([PROTO])?;
    compiler.include_imports(true).open_file("demo/v1/policies.proto")?;
    Ok(compiler.encode_file_descriptor_set())
}
