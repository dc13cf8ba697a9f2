//! Which instance should hold which shard.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::instances::{instance_id::InstanceId, shard::stable_hash};

/// Who holds a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Alive or not.
    pub(crate) instance: InstanceId,
    /// It is about to give the shard back.
    pub(crate) leaving: bool,
}

/// A shard that a member has; what it would rather keep is less.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Hold {
    leaving: bool,
    score: Reverse<u64>,
    index: usize,
}

/// Divides shards among members so that their numbers differ by one at most, and moves as few as that allows.
///
/// `holders` says who has each shard now; the answer says who should. All who see the same members and holders come to
/// the same answer. Those who see different ones may disagree for a while: the leases decide, and the next look agrees.
/// A shard that must move goes where rendezvous hashing sends it, among the members that have room.
pub(crate) fn plan(members: &[InstanceId], holders: &[Option<Holder>]) -> Vec<Option<InstanceId>> {
    if members.is_empty() {
        return vec![None; holders.len()];
    }
    let mut held: BTreeMap<&InstanceId, Vec<Hold>> = members.iter().map(|member| (member, Vec::new())).collect();
    for (index, holder) in holders.iter().enumerate() {
        let Some(holder) = holder else { continue };
        if let Some(shards) = held.get_mut(&holder.instance) {
            shards.push(Hold { leaving: holder.leaving, score: Reverse(score(&holder.instance, index)), index });
        }
    }

    // Who has most already is allowed the odd shard: nothing has to move for the sake of the remainder.
    let mut by_load: Vec<&InstanceId> = held.keys().copied().collect();
    by_load.sort_by_key(|member| Reverse(held[*member].len()));
    let (share, odd) = (holders.len() / by_load.len(), holders.len() % by_load.len());

    let mut should: Vec<Option<InstanceId>> = vec![None; holders.len()];
    let mut room: BTreeMap<&InstanceId, usize> = BTreeMap::new();
    for (rank, member) in by_load.into_iter().enumerate() {
        let quota = share + usize::from(rank < odd);
        let mut keeps = held.remove(member).expect("every member was counted");
        keeps.sort_unstable();
        keeps.truncate(quota);
        room.insert(member, quota - keeps.len());
        for Hold { index, .. } in keeps {
            should[index] = Some(member.clone());
        }
    }
    for (index, place) in should.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
        let open = room.iter_mut().filter(|(_, room)| **room > 0);
        let (member, room) = open
            .max_by_key(|(member, _)| score(member, index))
            .expect("the quotas add up to all shards");
        *room -= 1;
        *place = Some((*member).clone());
    }
    should
}

/// How well a shard fits a member: equally random for every pair, and the same for everybody who asks.
fn score(member: &InstanceId, index: usize) -> u64 {
    let index = u64::try_from(index).expect("shards are counted in 32 bits");
    stable_hash(&[member.as_str().as_bytes(), &index.to_be_bytes()])
}
