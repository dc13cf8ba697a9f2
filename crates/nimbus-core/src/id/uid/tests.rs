use std::collections::HashSet;

use crate::Uid;

#[test]
fn a_uid_is_its_text_however_long_it_is() {
    let uuid = "6f1c9a52-7d0e-4b43-9f0e-0c5d2f9b7a11";
    for text in ["u", uuid, &format!("{uuid}0"), &"x".repeat(253)] {
        let uid = Uid::new(text).expect("it is a name");
        assert_eq!((uid.as_str(), uid.to_string()), (text, text.to_owned()));
        assert_eq!(uid, uid.clone());
        assert!(HashSet::from([uid]).contains(text), "it is found by its text");
    }
}

#[test]
fn uids_are_in_the_order_of_their_texts() {
    let [short, long] = ["b".to_owned(), format!("a{}", "x".repeat(100))].map(|text| Uid::new(&text).expect("a name"));
    assert!(long < short);
}

#[test]
fn what_is_no_name_is_no_uid() {
    for text in ["", "a b", &"x".repeat(254)] {
        let refused = Uid::new(text).expect_err("it is no name");
        assert_eq!(refused.what, "uid");
    }
}
