//! Users and groups by name and by number.

use crate::owner::{group, parse, user};

#[test]
fn names_are_looked_up_and_numbers_stand_for_themselves() {
    assert_eq!(user("root").unwrap(), Some(0));
    assert_eq!(group("root").unwrap(), Some(0));
    assert_eq!(user("12345").unwrap(), Some(12345));
    assert_eq!(user("").unwrap(), None);
    assert_eq!(parse("a:x:1:2::/:\nb:x:7:8::/:\n", "b"), Some(7));
    assert_eq!(parse("a:x:1:2::/:\nbroken\nb:x\n", "b"), None);
}

#[test]
fn a_name_that_does_not_exist_may_exist_later_but_a_number_that_is_none_never_will() {
    let failure = user("nobody-has-this-name").unwrap_err();
    assert!(failure.code() == "NO_SUCH_OWNER" && !failure.is_permanent(), "{failure:?}");
    assert!(user("4294967295").unwrap_err().is_permanent());
}
