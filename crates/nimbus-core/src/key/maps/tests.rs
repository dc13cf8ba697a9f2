use crate::{KeyMap, KeySet, Kind, ObjectKey};

fn key(number: u32) -> ObjectKey {
    ObjectKey::new(Kind::new("demo.v1.Policy").unwrap(), "", &format!("n{number}")).unwrap()
}

#[test]
fn keys_that_are_equal_are_found_and_others_are_not() {
    let map: KeyMap<u32> = (0..10_000).map(|number| (key(number), number)).collect();
    assert_eq!(map.len(), 10_000);
    assert!((0..10_000).all(|number| map[&key(number)] == number));
    assert_eq!(map.get(&key(10_000)), None);
    let set: KeySet = map.keys().cloned().collect();
    assert!(set.contains(&key(7)) && !set.contains(&key(10_007)));
}
