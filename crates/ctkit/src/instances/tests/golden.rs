//! What instances of different releases must agree on.

use std::collections::BTreeMap;

use nimbus_core::{Kind, ObjectKey};

use crate::{
    Held, InstanceId, Shard,
    instances::lease_names::{LeaseNames, Purpose},
};

fn key(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new(kind).unwrap(), namespace, name).unwrap()
}

#[test]
fn the_shard_of_an_object_never_changes() {
    let check = |key: ObjectKey, of_32: u32, of_1000: u32| {
        assert_eq!((Shard::of(&key, 32), Shard::of(&key, 1000)), (Shard::new(of_32), Shard::new(of_1000)), "{key}");
        assert_eq!(Shard::of(&key, 1), Shard::new(0));
    };
    check(key("demo.v1.Policy", "", "a"), 14, 446);
    check(key("demo.v1.Policy", "a", "a"), 28, 132);
    check(key("demo.v1.Policy", "default", "web"), 4, 276);
    check(key("demo.v1.Zone", "default", "web"), 30, 478);
}

#[test]
fn objects_are_spread_evenly_over_shards() {
    let mut counts: BTreeMap<Shard, u32> = BTreeMap::new();
    for index in 0..32_000 {
        *counts
            .entry(Shard::of(&key("demo.v1.Policy", "default", &format!("policy-{index}")), 32))
            .or_default() += 1;
    }
    assert_eq!(counts.len(), 32);
    assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
}

#[test]
fn leases_are_known_by_their_names() {
    let names = LeaseNames::new("a.b");
    assert_eq!(&*names.shard(Shard::new(7)), "a.b.shard-7");
    assert_eq!(&*names.member(&InstanceId::new("x")), "a.b.member-x");
    let check = |name: &str, expected: Option<Purpose>| {
        let lease = Held { name: name.into(), holder: "x".into(), token: 1, expires_in: Default::default() };
        assert_eq!(names.purpose(&lease), expected, "{name}");
    };
    check("a.b.shard-7", Some(Purpose::Shard(Shard::new(7))));
    check("a.b.member-x", Some(Purpose::Member(InstanceId::new("x"))));
    check("a.b.member-y", None);
    check("a.b.c.shard-7", None);
    check("a.b.shard-x", None);
    check("a.shard-7", None);
    check("a.b.member-x.shard-7", None);
    check("a.bc.shard-7", None);
}
