//! Owners, their children, and answers that never came.

mod memory;
mod model;
mod world;

use nimbus_store::Op;

use crate::publications::{
    Collision, Publications,
    tests::world::{child, drafts, names, owner, record, show},
};

fn published(name: &str, children: &[&str]) -> Publications {
    let mut publications = Publications::default();
    publications.staged(&owner(name, 1), drafts(children)).unwrap();
    publications.committed(&owner(name, 1).key);
    publications
}

#[test]
fn adds_come_before_removals_and_carry_their_owner() {
    let mut publications = published("a", &["z", "y", "x"]);
    let steps = publications.staged(&owner("a", 1), drafts(&["w", "y", "v"])).unwrap();
    assert_eq!(show(&steps), "+w +y +v -x -z");
    let Op::Upsert(draft) = &steps[0].op else { panic!("an add comes first") };
    assert_eq!(draft.owner, Some(owner("a", 1).named()));
}

/// H18: what there is and what there should be are looked at together, so that nothing of either is missed.
#[test]
fn an_owner_that_wants_nothing_any_more_loses_everything() {
    let mut publications = published("a", &["x", "y"]);
    assert_eq!(show(&publications.staged(&owner("a", 1), drafts(&[])).unwrap()), "-x -y");
    publications.committed(&owner("a", 1).key);
    assert_eq!(publications.children(&owner("a", 1).key).count(), 0);
    assert_eq!(show(&publications.withdraw(&owner("a", 1).key)), "");
}

#[test]
fn a_child_that_is_published_twice_in_one_reaction_is_named() {
    let mut publications = Publications::default();
    let error = publications.staged(&owner("a", 1), drafts(&["x", "y", "x"])).unwrap_err();
    assert_eq!(error, Collision::Twice { child: child("x"), owner: owner("a", 1).key });
    let text =
        "demo.v1.Owner/a publishes demo.v1.Child/x twice in one reaction (hint: give each child a role of its own)";
    assert_eq!(error.to_string(), text);
    assert_eq!(publications.children(&owner("a", 1).key).count(), 0, "nothing is staged");
}

#[test]
fn a_child_of_another_owner_is_refused_by_the_name_of_that_owner() {
    let mut publications = published("a", &["x"]);
    let error = publications.staged(&owner("b", 1), drafts(&["y", "x"])).unwrap_err();
    assert_eq!(error, Collision::Taken { child: child("x"), by: owner("a", 1).key });
    assert_eq!(publications.owner_of(&child("y")), None, "nothing is staged");
}

#[test]
fn a_child_moves_to_another_owner_once_the_first_has_withdrawn_it() {
    let mut publications = published("a", &["x", "y"]);
    let (a, b) = (owner("a", 1), owner("b", 1));
    publications.staged(&a, drafts(&["y"])).unwrap();
    assert!(publications.staged(&b, drafts(&["x"])).is_err(), "it may still be there");
    publications.committed(&a.key);
    assert_eq!(show(&publications.staged(&b, drafts(&["x"])).unwrap()), "+x");
    publications.committed(&b.key);
    assert_eq!(show(&publications.withdraw(&a.key)), "-y");
}

#[test]
fn a_new_life_of_an_owner_withdraws_the_children_of_the_old_one_in_the_same_transaction() {
    let mut publications = published("a", &["x-1", "same"]);
    let steps = publications.staged(&owner("a", 2), drafts(&["x-2", "same"])).unwrap();
    assert_eq!(show(&steps), "+x-2 +same -x-1");
}

#[test]
fn what_was_staged_is_withdrawn_too_if_nobody_knows_whether_it_is_there() {
    let mut publications = published("a", &["x"]);
    let a = owner("a", 1);
    publications.staged(&a, drafts(&["y"])).unwrap();
    publications.failed(&a.key);
    publications.staged(&a, drafts(&["z"])).unwrap();
    publications.failed(&a.key);
    assert_eq!(show(&publications.withdraw(&a.key)), "-x -y -z");
}

#[test]
fn an_answer_to_nothing_changes_nothing() {
    let mut publications = published("a", &["x"]);
    let a = owner("a", 1);
    publications.committed(&a.key);
    publications.staged(&a, drafts(&["y"])).unwrap();
    publications.failed(&a.key);
    publications.committed(&a.key);
    assert_eq!(names(publications.children(&a.key)), "x y");
}

#[test]
fn what_the_target_refused_is_free_for_others() {
    let mut publications = published("a", &["x"]);
    let a = owner("a", 1);
    publications.staged(&a, drafts(&["x", "y"])).unwrap();
    publications.failed(&a.key);
    publications.staged(&a, drafts(&["y", "z"])).unwrap();
    publications.refused(&a.key);
    assert_eq!(publications.owner_of(&child("z")), None);
    assert_eq!(names(publications.children(&a.key)), "x y", "an older answer may still be missing for y");
}

#[test]
fn a_child_that_another_publisher_took_is_left_alone() {
    let mut publications = published("a", &["x", "y"]);
    publications.lost(&child("x"));
    assert_eq!(show(&publications.withdraw(&owner("a", 1).key)), "-y");
}

#[test]
fn orphans_stay_as_they_are_without_an_owner_and_survive_syncs() {
    let mut publications = published("a", &["x", "y"]);
    let (a, records) = (owner("a", 1), [record("x", Some("a")), record("other", Some("b"))]);
    let steps = publications.orphan(&a.key, &records);
    assert_eq!(show(&steps), "+x");
    let Op::Upsert(draft) = &steps[0].op else { panic!("it stays") };
    assert_eq!((&draft.owner, &draft.spec), (&None, &records[0].spec()));
    assert_eq!(steps[0].precondition.revision, Some(records[0].revision()));
    publications.committed(&a.key);
    assert_eq!(names(&publications.survivors()), "x");
    assert_eq!(show(&publications.withdraw(&a.key)), "", "they are no longer its own");
    // Somebody wants it again: it is adopted.
    publications.staged(&owner("b", 1), drafts(&["x"])).unwrap();
    publications.committed(&owner("b", 1).key);
    assert_eq!(names(&publications.survivors()), "");
}

/// B11: a controller that restarts deletes nothing that is still wanted.
#[test]
fn children_of_owners_that_have_not_published_since_a_start_survive() {
    let mut publications = Publications::default();
    let records = [record("x", Some("a")), record("y", Some("b")), record("z", None), record("w", Some("dead"))];
    publications.recover(&records);
    assert_eq!(names(&publications.survivors()), "w x y z");

    publications.staged(&owner("a", 1), drafts(&["x2"])).unwrap();
    publications.committed(&owner("a", 1).key);
    publications.staged(&owner("b", 1), drafts(&["y2"])).unwrap();
    publications.failed(&owner("b", 1).key);
    let alive = [owner("a", 1).key, owner("b", 1).key];
    for dead in publications.unsettled_not_in(|owner| alive.contains(owner)) {
        assert_eq!(show(&publications.withdraw(&dead)), "-w");
        publications.committed(&dead);
    }
    assert_eq!(names(&publications.survivors()), "y y2 z");
}

#[test]
fn a_transaction_that_may_still_happen_is_remembered_on_another_bus() {
    let mut publications = published("a", &["x"]);
    let a = owner("a", 1);
    publications.staged(&a, drafts(&["y", "z"])).unwrap();
    publications.recover(&[record("z", Some("b"))]);
    assert_eq!(show(&publications.withdraw(&a.key)), "-x -y", "what is there says that z is another's");
}

#[test]
fn children_of_an_owner_without_a_proper_name_are_nobodys() {
    let mut publications = Publications::default();
    publications.recover(&[record("x", Some("not a name"))]);
    assert_eq!(names(&publications.survivors()), "x");
    assert!(publications.unsettled_not_in(|_| false).is_empty());
}
