//! The kind that this agent serves.

#[allow(missing_docs, unreachable_pub, dead_code, reason = "generated; the proto file is the documentation")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/demo.v1.rs"));
}

pub(crate) use generated::ZoneRules;
