//! How shards are divided among members.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::{
    InstanceId,
    instances::plan::{Holder, plan},
};

fn ids(range: std::ops::Range<usize>) -> Vec<InstanceId> {
    range.map(|index| InstanceId::new(&format!("i{index}"))).collect()
}

fn held_by(plan: &[Option<InstanceId>]) -> Vec<Option<Holder>> {
    let holder = |instance: &InstanceId| Holder { instance: instance.clone(), leaving: false };
    plan.iter().map(|instance| instance.as_ref().map(holder)).collect()
}

fn moved(before: &[Option<InstanceId>], after: &[Option<InstanceId>]) -> usize {
    before.iter().zip(after).filter(|(before, after)| before != after).count()
}

proptest! {
    #[test]
    fn every_shard_has_a_member_and_members_differ_by_one_at_most(
        shards in 1..100_usize,
        members in 1..12_usize,
        holders in proptest::collection::vec(proptest::option::of((0..15_usize, any::<bool>())), 100),
    ) {
        let holder = |(index, leaving): (usize, bool)| Holder { instance: ids(index..index + 1).remove(0), leaving };
        let holders: Vec<_> = holders.into_iter().take(shards).map(|held| held.map(holder)).collect();
        let mut members = ids(0..members);
        let should = plan(&members, &holders);

        let mut counts: BTreeMap<_, usize> = members.iter().map(|member| (member.clone(), 0)).collect();
        for member in &should {
            *counts.get_mut(member.as_ref().unwrap()).unwrap() += 1;
        }
        let counts: BTreeSet<usize> = counts.into_values().collect();
        prop_assert!(counts.last().unwrap() - counts.first().unwrap() <= 1);

        prop_assert_eq!(&plan(&members, &held_by(&should)), &should, "what is as it should be stays");
        members.reverse();
        prop_assert_eq!(&plan(&members, &holders), &should, "the order of members does not matter");
    }

    #[test]
    fn who_comes_gets_a_part_and_who_goes_leaves_one_and_nothing_else_moves(shards in 1..100_usize, n in 1..12_usize) {
        let fewer = plan(&ids(0..n), &vec![None; shards]);
        let more = plan(&ids(0..n + 1), &held_by(&fewer));
        prop_assert_eq!(moved(&fewer, &more), shards / (n + 1));

        let left = more.iter().filter(|member| member.as_ref() == Some(&InstanceId::new("i0"))).count();
        let rest = plan(&ids(1..n + 1), &held_by(&more));
        prop_assert_eq!(moved(&more, &rest), left);
    }
}

#[test]
fn a_member_goes_on_giving_away_what_it_began_to_give_away() {
    let me = InstanceId::new("i0");
    let holders: Vec<_> = (0..8)
        .map(|index| Some(Holder { instance: me.clone(), leaving: [1, 3, 5, 7].contains(&index) }))
        .collect();
    let should = plan(&ids(0..2), &holders);
    let kept: Vec<usize> = (0..8).filter(|index| should[*index].as_ref() == Some(&me)).collect();
    assert_eq!(kept, [0, 2, 4, 6]);
}

#[test]
fn without_members_nobody_should_have_anything() {
    assert_eq!(plan(&[], &[None, None]), [None, None]);
}
