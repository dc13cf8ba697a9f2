//! Reactions of one transaction, told apart.

use nimbus_core::{Generation, Revision};
use nimbus_store::{Committed, Effect, Outcome, Step};

use super::{Batch, Fate, Staged};
use crate::{
    action::Next,
    context::Wishes,
    engine::starting::Sort,
    fixtures::{key, put, record},
};

/// Reactions with so many steps each.
fn batch(steps: &[(&str, usize)]) -> Batch {
    batch_of(steps, b"spec")
}

/// The same, with this spec in every step.
fn batch_of(steps: &[(&str, usize)], spec: &[u8]) -> Batch {
    let mut batch = Batch::default();
    for (name, count) in steps {
        let (record, next, wishes) = (record(name, 1), Next::Done, Wishes::default());
        batch
            .staged
            .push(Staged { key: key(name), record, sort: Sort::Apply, next, wishes, steps: *count });
        batch
            .steps
            .extend((0..*count).map(|at| Step::from(put(&key(&format!("{name}-{at}")), spec))));
    }
    batch
}

fn names(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.op.key().name()).collect()
}

/// An owner whose child is the same counted as one whose child was changed, if the one before it had several, of which not
/// only the last was changed.
#[test]
fn each_reaction_has_the_outcomes_of_its_own_steps() {
    let Batch { staged, steps } = batch(&[("a", 3), ("b", 1), ("c", 0), ("d", 1)]);
    let effects = [Effect::Created, Effect::Updated, Effect::Unchanged, Effect::Unchanged, Effect::Deleted];
    let outcome = |effect| Outcome { effect, uid: None, generation: Generation(1), revision: Revision(9) };
    let committed = Committed { revision: Revision(9), outcomes: effects.map(outcome).into() };
    let Fate::Taken(revision, delivered) = Fate::taken(&committed, staged, &steps) else { panic!("it was taken") };
    assert_eq!(revision, Revision(9));
    let told: Vec<_> = delivered.iter().map(|one| (one.key.name(), one.children.len(), one.changed)).collect();
    assert_eq!(told, [("a", 3, true), ("b", 1, false), ("c", 0, false), ("d", 1, true)]);
}

#[test]
fn a_batch_is_split_into_reactions_with_their_steps() {
    let split: Vec<Batch> = batch(&[("a", 2), ("b", 0), ("c", 1)]).split().collect();
    let steps: Vec<_> = split.iter().map(|one| (one.staged[0].key.name(), names(&one.steps))).collect();
    assert_eq!(steps, [("a", vec!["a-0", "a-1"]), ("b", vec![]), ("c", vec!["c-0"])]);
}

/// A bus refuses a transaction that is too large, and then every reaction in it was sent by itself.
#[test]
fn a_batch_that_is_too_large_is_sent_in_parts_that_are_not() {
    let check = |batch: Batch, expected: &[&[&str]]| {
        let (all, parts) = (batch.steps.len(), batch.parts());
        let names: Vec<Vec<_>> =
            parts.iter().map(|part| part.staged.iter().map(|one| one.key.name()).collect()).collect();
        assert_eq!(names, expected);
        assert_eq!(parts.iter().map(|part| part.steps.len()).sum::<usize>(), all);
        for Batch { staged, steps } in &parts {
            let expected = staged.iter().flat_map(|one| (0..one.steps).map(|at| format!("{}-{at}", one.key.name())));
            assert!(steps.iter().map(|step| step.op.key().name()).eq(expected), "everybody has its own steps");
        }
    };
    check(batch(&[("a", 2), ("b", 0), ("c", 1)]), &[&["a", "b", "c"]]);
    let large = vec![0; 400 << 10];
    check(batch_of(&[("a", 1), ("b", 1), ("c", 1), ("d", 0), ("e", 1)], &large), &[&["a", "b"], &["c", "d", "e"]]);
    check(batch_of(&[("a", 1), ("b", 3), ("c", 1)], &large), &[&["a"], &["b"], &["c"]]);
    check(batch(&[("a", 2000), ("b", 2000), ("c", 97), ("d", 1)]), &[&["a", "b"], &["c", "d"]]);
}
