//! The order of changes that watchers follow.

use super::*;
use crate::fleet::order::{Change, Changes};

/// The agents that changed after a version, `-` in front of those that are gone, and how far that leads.
fn after(land: &Land, version: u64, max: usize) -> Option<(Vec<String>, u64)> {
    let Changes { list, to } = land.fleet.changes(version, max)?;
    let name = |change| match change {
        Change::Agent(agent) => agent.id.to_string(),
        Change::Removed(id) => format!("-{id}"),
    };
    Some((list.into_iter().map(name).collect(), to))
}

#[test]
fn an_agent_stands_at_its_last_change_only() {
    let mut land = Land::new();
    for id in ["a", "b", "c"] {
        land.connect(id, scope(id, "z", &[]), None);
    }
    (0..5).for_each(|_| land.applied("a", 0));
    assert_eq!(after(&land, 0, 10), Some((vec!["b".into(), "c".into(), "a".into()], 8)));
    assert_eq!(after(&land, 8, 10), Some((vec![], 8)));
    // A chatty agent goes to the end: whoever takes two at a time still gets to the others.
    assert_eq!(after(&land, 0, 2), Some((vec!["b".into(), "c".into()], 3)));
    land.applied("a", 0);
    assert_eq!(after(&land, 3, 2), Some((vec!["a".into()], 9)));
}

#[test]
fn ends_of_sessions_losses_and_removals_are_changes() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.cut("a");
    assert_eq!(after(&land, 1, 10), Some((vec!["a".into()], 2)));
    land.pass(LOST_AFTER);
    land.fleet.tick(land.now);
    assert_eq!(after(&land, 2, 10), Some((vec!["a".into()], 3)));
    land.fleet.tick(land.now);
    assert_eq!(after(&land, 3, 10), Some((vec![], 3)), "it is lost once");
    land.pass(FORGET_AFTER);
    land.fleet.tick(land.now);
    assert_eq!(after(&land, 0, 10), Some((vec!["-a".into()], 4)));
    land.connect("a", scope("a", "z", &[]), None);
    assert_eq!(after(&land, 0, 10), Some((vec!["a".into()], 5)), "one that comes back was not forgotten");
}

#[test]
fn who_is_behind_removals_that_are_no_longer_known_must_start_again() {
    let mut land = Land::new();
    land.connect("stays", scope("stays", "z", &[]), None);
    let before = land.fleet.version();
    for n in 0..5_000 {
        let id = format!("a{n}");
        land.connect(&id, scope(&id, "z", &[]), None);
        land.say(&id, Said { leaving: true, ..Said::default() }).unwrap();
        land.cut(&id);
    }
    assert_eq!(after(&land, before, 10), None);
    assert_eq!(after(&land, land.fleet.version(), 10), Some((vec![], land.fleet.version())));
    let (all, _) = after(&land, land.fleet.version() - 2, 10).unwrap();
    assert_eq!(all, ["-a4999"]);
    assert_eq!(land.census(), [1, 0, 0]);
}
