use nimbus_core::{Finalizers, Generation, Kind, ObjectKey, PublisherId, Revision};
use nimbus_store::{Reason, Refused};

use crate::source::CommitError;

fn kind() -> Kind {
    Kind::new("test.v1.Alpha").unwrap()
}

fn key() -> ObjectKey {
    ObjectKey::new(kind(), "", "a").unwrap()
}

fn publisher() -> PublisherId {
    PublisherId::new("p").unwrap()
}

/// The name of the variant, and whether it names the object.
fn told(error: &CommitError) -> (&'static str, bool) {
    match error {
        CommitError::Conflict { .. } => ("conflict", true),
        CommitError::NotFound(_) => ("not found", true),
        CommitError::Foreign { .. } => ("foreign", true),
        CommitError::Fenced(_) => ("fenced", false),
        CommitError::Invalid { key, .. } => ("invalid", key.is_some()),
        CommitError::Unavailable(_) => ("unavailable", false),
    }
}

#[track_caller]
fn check(refused: Refused, expected: (&'static str, bool)) {
    let message = refused.to_string();
    assert_eq!(told(&CommitError::from(refused)), expected, "{message}");
}

#[test]
fn every_reason_of_a_step_has_one_consequence() {
    let (one, two) = (Generation(1), Generation(2));
    let cases = [
        (Reason::Precondition { field: "revision", expected: "1".into(), found: "2".into() }, ("conflict", true)),
        (Reason::Foreign(publisher()), ("foreign", true)),
        (Reason::StaleGeneration { given: one, current: two }, ("conflict", true)),
        (Reason::SameGeneration(one), ("invalid", true)),
        (Reason::Cycle(vec![key(), key()]), ("invalid", true)),
        (Reason::Twice, ("invalid", true)),
        (Reason::NoSuchObject, ("not found", true)),
        (Reason::Deleting(Finalizers::default()), ("conflict", true)),
        (Reason::ObservedAhead { observed: two, current: one }, ("conflict", true)),
        (Reason::TooLarge { limit: "labels", size: 65, max: 64 }, ("invalid", true)),
    ];
    for (reason, expected) in cases {
        check(Refused::Step { step: 0, key: key(), reason }, expected);
    }
}

#[test]
fn every_other_refusal_has_one_consequence() {
    check(Refused::Fenced { publisher: publisher(), given: 1, current: 2 }, ("fenced", false));
    check(Refused::NotAhead { given: Revision(1), head: Revision(2) }, ("invalid", false));
    check(Refused::Full { limit: "objects", max: 1 }, ("unavailable", false));
    check(Refused::Full { limit: "ops", max: 1 }, ("invalid", false));
    check(Refused::NoSync(publisher()), ("unavailable", false));
    check(Refused::NotCovered { key: key(), kind: kind() }, ("invalid", true));
}
