//! Labels as one text.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::Labels;

fn pairs() -> impl Strategy<Value = BTreeMap<String, String>> {
    // Few characters, so that keys are often beginnings of others; '-' comes before the letters, values may be empty.
    prop::collection::btree_map("[-ab/]{1,3}", "[-ab:]{0,3}", 0..4)
}

proptest! {
    #[test]
    fn labels_are_compared_and_read_as_the_pairs_that_they_are(one in pairs(), two in pairs()) {
        let (a, b) = (Labels::new(&one).unwrap(), Labels::new(&two).unwrap());
        prop_assert_eq!(a.cmp(&b), one.iter().cmp(two.iter()));
        prop_assert_eq!(a == b, one == two);
        prop_assert_eq!(a.to_wire(), one.clone());
        prop_assert_eq!((a.len(), a.is_empty()), (one.len(), one.is_empty()));
        for key in one.keys().chain(two.keys()) {
            prop_assert_eq!(a.get(key), one.get(key).map(String::as_str));
        }
    }

    #[test]
    fn pairs_in_any_order_are_the_labels_that_a_map_of_them_would_be(pairs in prop::array::uniform3(("[-ab/ ]{1,2}", "[-ab: ]{0,2}"))) {
        let of_map = Labels::new(&BTreeMap::from(pairs.clone()));
        let of_pairs = Labels::try_from(pairs.each_ref().map(|(key, value)| (&**key, &**value)));
        prop_assert_eq!(of_pairs.is_ok(), pairs.iter().all(|(key, value)| !key.contains(' ') && !value.contains(' ')));
        prop_assert!(of_pairs.is_err() || of_pairs == of_map);
    }
}
