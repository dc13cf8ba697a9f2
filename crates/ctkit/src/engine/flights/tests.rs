//! What is watched, and what is known not to be.

use nimbus_core::{ObjectKey, Revision};

use crate::{
    engine::{
        flights::{Flights, MAX},
        station::StationId,
    },
    fixtures::key,
};

fn watching(revisions: impl IntoIterator<Item = u64>) -> Flights {
    let mut flights = Flights::default();
    for revision in revisions {
        flights.watch(Revision(revision), StationId(0), [key(&format!("o{revision}"))].into());
    }
    flights
}

fn between(flights: &Flights, from: u64, to: u64) -> Vec<&ObjectKey> {
    flights.between(Revision(from), Revision(to)).map(|(_, owner)| owner).collect()
}

#[test]
fn whoever_gets_further_has_what_lies_between() {
    let flights = watching([3, 5, 7]);
    assert_eq!(between(&flights, 3, 5), [&key("o5")]);
    assert_eq!(between(&flights, 0, 9).len(), 3);
    assert!(flights.has_all_after(Revision::ZERO));
}

#[test]
fn what_everybody_has_is_not_watched_any_more_and_that_is_known() {
    let mut flights = watching([3, 5, 7]);
    flights.arrived(Revision(2));
    assert!(flights.has_all_after(Revision::ZERO), "nothing was let go");
    flights.arrived(Revision(6));
    assert_eq!(between(&flights, 0, 9), [&key("o7")]);
    assert!(flights.has_all_after(Revision(6)) && !flights.has_all_after(Revision(5)));
}

#[test]
fn what_was_there_before_is_known_not_to_be_watched() {
    let mut flights = watching([8]);
    flights.disregard(Revision(4));
    assert!(flights.has_all_after(Revision(4)) && !flights.has_all_after(Revision(3)));
}

#[test]
fn an_agent_that_never_gets_any_further_does_not_make_it_grow() {
    let flights = watching(1..=MAX as u64 + 2);
    assert_eq!(between(&flights, 0, u64::MAX).len(), MAX);
    assert!(flights.has_all_after(Revision(2)) && !flights.has_all_after(Revision(1)));
}
