//! References against sets that are simply kept and compared (H19).

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{Kind, Labels, ObjectKey, Revision};
use proptest::{collection::vec, prelude::*};
use tokio::time::Instant;

use crate::references::{
    Changed, Diff, Ref, References,
    tests::{key, labels, refs},
};

/// Everything that can be referred to; some of it refers itself.
const REFS: &str = "P/a P/b P/c Set/x Set/y Net/x Net/y P Set Set?zone=a Set?zone!=a Net?!zone Net?zone";
const REFERRERS: [&str; 4] = ["P/a", "P/b", "P/c", "P/d"];
const REFERENTS: [&str; 7] = ["P/a", "P/d", "Set/x", "Set/y", "Set/z", "Net/x", "Net/z"];
const LABELS: [Option<&str>; 4] = [None, Some(""), Some("zone=a"), Some("zone=b")];

#[derive(Debug, Clone)]
enum Move {
    Declare { referrer: usize, refs: Vec<usize> },
    Forget { referrer: usize },
    Change { referent: usize, before: usize, after: usize },
}

#[derive(Debug, Default)]
struct Naive(BTreeMap<ObjectKey, BTreeSet<Ref>>);

impl Naive {
    fn kinds(&self) -> BTreeSet<Kind> {
        self.0.values().flatten().map(|reference| reference.kind().clone()).collect()
    }

    fn replace(&mut self, referrer: &ObjectKey, refs: &BTreeSet<Ref>) -> Diff {
        let (kinds, before) = (self.kinds(), self.0.insert(referrer.clone(), refs.clone()).unwrap_or_default());
        let now = self.kinds();
        Diff {
            added: refs.difference(&before).cloned().collect(),
            removed: before.difference(refs).cloned().collect(),
            kinds_started: now.difference(&kinds).cloned().collect(),
            kinds_stopped: kinds.difference(&now).cloned().collect(),
        }
    }

    fn woken(&self, key: &ObjectKey, labels: [Option<&Labels>; 2]) -> Vec<ObjectKey> {
        let looks = |reference: &Ref| match reference {
            Ref::Object(to) => to == key,
            Ref::Matching(kind, selector) => {
                kind == key.kind() && labels.into_iter().flatten().any(|labels| selector.matches(labels))
            }
        };
        let woken = self.0.iter().filter(|(referrer, refs)| *referrer != key && refs.iter().any(looks));
        woken.map(|(referrer, _)| referrer.clone()).collect()
    }
}

/// Kinds are told in the order in which their references were handled; only the set matters.
fn ordered(mut diff: Diff) -> Diff {
    diff.kinds_started.sort();
    diff.kinds_stopped.sort();
    diff
}

fn a_move() -> impl Strategy<Value = Move> {
    let all = refs(REFS).len();
    prop_oneof![
        6 => (0..REFERRERS.len(), vec(0..all, 0..8)).prop_map(|(referrer, refs)| Move::Declare { referrer, refs }),
        1 => (0..REFERRERS.len()).prop_map(|referrer| Move::Forget { referrer }),
        6 => (0..REFERENTS.len(), 0..LABELS.len(), 0..LABELS.len())
            .prop_map(|(referent, before, after)| Move::Change { referent, before, after }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_set_that_changes_a_thousand_times_is_the_same_as_in_a_naive_model(moves in vec(a_move(), 2_000)) {
        let (all, now) = (refs(REFS), Instant::now());
        let (mut references, mut naive) = (References::default(), Naive::default());
        for one in moves {
            match one {
                Move::Declare { referrer, refs } => {
                    let refs: Vec<_> = refs.into_iter().map(|at| all[at].clone()).collect();
                    let diff = references.declare(&key(REFERRERS[referrer]), refs.iter().cloned(), now);
                    let expected = naive.replace(&key(REFERRERS[referrer]), &refs.into_iter().collect());
                    prop_assert_eq!(ordered(diff), expected);
                }
                Move::Forget { referrer } => {
                    let diff = references.forget(&key(REFERRERS[referrer]));
                    let expected = naive.replace(&key(REFERRERS[referrer]), &BTreeSet::new());
                    prop_assert_eq!(ordered(diff), expected);
                }
                Move::Change { referent, before, after } => {
                    let (key, before, after) = (key(REFERENTS[referent]), LABELS[before], LABELS[after]);
                    let (before, after) = (before.map(labels), after.map(labels));
                    let change =
                        Changed { key: &key, before: before.as_ref(), after: after.as_ref(), at: Revision(1) };
                    let expected = naive.woken(&key, [before.as_ref(), after.as_ref()]);
                    prop_assert_eq!(references.changed(&change, now).referrers, expected);
                }
            }
            let counted: usize = references.kinds().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, naive.0.values().map(BTreeSet::len).sum::<usize>());
        }
    }
}
