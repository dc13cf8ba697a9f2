//! Tests of the kinds.

use prost::Name as _;

use crate::demo::kinds::{NetworkPolicy, POLICY, RULES, ZoneRules};

/// Whoever has seen the demo may let a `zone-agent` of his own join it.
#[test]
fn the_demo_has_the_kinds_of_the_zone_agent() {
    let ours = include_str!("../../../proto/demo/v1/policies.proto");
    let theirs = include_str!("../../../../../agents/zone-agent/proto/demo/v1/policies.proto");
    assert_eq!(ours, theirs);
}

#[test]
fn kinds_have_the_names_of_their_messages() {
    assert_eq!((POLICY, RULES), (&*NetworkPolicy::full_name(), &*ZoneRules::full_name()));
}
