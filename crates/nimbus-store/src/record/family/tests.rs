//! Families are shared for as long as somebody has them, and then forgotten. They know a few kinds of owners.

use std::sync::Arc;

use nimbus_core::{Kind, PublisherId};

use crate::record::family::{FAMILIES, Family, LOOK_FROM, OwnerKinds};

fn family(kind: &str, publisher: &str) -> Arc<Family> {
    Family::of(&Kind::new(kind).unwrap(), &PublisherId::new(publisher).unwrap())
}

#[test]
fn families_are_shared_and_forgotten_when_nobody_has_them() {
    let one = family("family.v1.One", "p");
    assert!(!Arc::ptr_eq(&one, &family("family.v1.Two", "p")));
    assert!(!Arc::ptr_eq(&one, &family("family.v1.One", "q")));
    assert!(Arc::ptr_eq(&one, &family("family.v1.One", "p")));
    // Also by another thread, which has made none before.
    let other = std::thread::spawn(|| family("family.v1.One", "p")).join().unwrap();
    assert!(Arc::ptr_eq(&one, &other));
    for number in 0..10 * LOOK_FROM {
        family("family.v1.Many", &number.to_string());
    }
    let known = FAMILIES.lock().known.len();
    // Other tests have some of their own meanwhile.
    assert!(known < 5 * LOOK_FROM, "{known} families are remembered, and one is in use");
}

#[test]
fn the_first_kinds_of_owners_have_numbers_and_later_ones_have_none() {
    let kinds = OwnerKinds::default();
    let names: Vec<_> = (0..=OwnerKinds::MOST).map(|number| format!("owner.v1.Kind{number}")).collect();
    // What is no kind takes no number away from one.
    assert_eq!((kinds.number_of(""), kinds.number_of(&"k".repeat(OwnerKinds::LONGEST + 1))), (None, None));
    for _ in 0..2 {
        for (name, number) in names.iter().zip(0..OwnerKinds::MOST as u8) {
            assert_eq!((kinds.number_of(name), kinds.get(number)), (Some(number), &**name));
        }
        assert_eq!(kinds.number_of(&names[OwnerKinds::MOST]), None);
    }
}
