//! What bars look like.

use crate::progress::{bar, percent};

#[test]
fn a_bar_is_full_only_if_all_is_done_and_empty_only_if_nothing_is() {
    let check = |done, all, drawn: &str, hundredths| {
        assert_eq!((&*bar(done, all, 10), percent(done, all)), (drawn, hundredths));
    };
    check(0, 0, "[----------]", 0);
    check(0, 10, "[----------]", 0);
    check(1, 1_000, "[#---------]", 0);
    check(7, 10, "[#######---]", 70);
    check(999, 1_000, "[#########-]", 99);
    check(10, 10, "[##########]", 100);
    check(u32::MAX, u32::MAX, "[##########]", 100);
}
