//! What an owner costs.

use std::mem::size_of;

use nimbus_core::{KeyMap, ObjectKey};

use crate::publications::{
    Publications,
    tests::world::{drafts, owner},
};

/// Bytes of a hash table: a power of two of places, of which at most seven in eight are used, and a byte for each.
fn table<V>(map: &KeyMap<V>) -> usize {
    (map.capacity() * 8 / 7).next_power_of_two() * (size_of::<(ObjectKey, V)>() + 1)
}

#[test]
fn a_hundred_thousand_owners_with_a_child_each_cost_little_more_than_their_names() {
    const OWNERS: usize = 100_000;
    let mut publications = Publications::default();
    for number in 0..OWNERS {
        let owner = owner(&number.to_string(), 1);
        // Twice, as names that are published again must not be held twice.
        for _ in 0..2 {
            publications.staged(&owner, drafts(&[&number.to_string()])).unwrap();
            publications.committed(&owner.key);
        }
    }
    let bytes = table(&publications.owners) + table(&publications.known);
    assert!(publications.open.is_empty() && publications.unsettled.is_empty());
    assert!(bytes / OWNERS <= 90, "{} bytes per owner", bytes / OWNERS);
}
