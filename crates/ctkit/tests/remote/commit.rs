//! Transactions over the network, and every way in which one fails.

use std::time::Duration;

use ctkit::{CommitError, Guard, Remote, RemoteError, Source as _};
use nimbus_core::{Generation, PublisherId, Revision, Uid};
use nimbus_store::{Draft, Effect, Op, Precondition, StatusDraft, Step, Txn};

use tokio::time::Instant;

use crate::world::{
    NOWHERE, SILENT, Watcher, World, commit, delete, draft, finalizers, key, kind, packed, put, put_for, txn,
};

fn step(op: Op, precondition: Precondition) -> Step {
    Step { op, precondition, take_over: false }
}

fn one(step: Step) -> Txn {
    Txn { steps: vec![step], ..txn(Vec::new()) }
}

fn by(publisher: &str, mut txn: Txn) -> Txn {
    txn.publisher = PublisherId::new(publisher).unwrap();
    txn
}

#[tokio::test(start_paused = true)]
async fn a_transaction_arrives_as_it_was_meant() {
    let (near, far) = (World::start(), World::start());
    let ops = || {
        let labelled = Draft {
            uid: Some(Uid::new("u-1").unwrap()),
            generation: Some(Generation(7)),
            labels: nimbus_core::Labels::new(&[("zone".to_owned(), "a".to_owned())].into()).unwrap(),
            refs: [nimbus_core::Reference::strong(key("a"))].into(),
            owner: Some(
                nimbus_wire::v1::Owner { kind: "t.v1.Alpha".into(), name: "o".into(), ..Default::default() }.into(),
            ),
            annotations: nimbus_core::Annotations::new([("note".to_owned(), "x".to_owned())].into()).unwrap(),
            ..draft("b", "1")
        };
        vec![put("a", "1"), Op::Upsert(labelled), put_for("c", "1", "zone in (a,b)"), delete("d")]
    };
    let status = || Op::Status(StatusDraft { key: key("b"), status: packed("up"), observed: Generation(7) });
    let remote = far.remote();
    for ops in [ops(), vec![status(), finalizers("a", &["y", "z"], &[])], vec![delete("a")], ops()] {
        let here = near.bus.store().commit(&txn(ops.clone()));
        let there = commit(&remote, txn(ops)).await;
        assert_eq!(here.ok(), there.ok(), "what came of it is the same, step by step");
    }
    assert_eq!(near.holds(), far.holds());
}

#[tokio::test(start_paused = true)]
async fn whoever_compares_and_loses_is_told_of_the_object() {
    let world = World::start();
    let remote = world.remote();
    let made = commit(&remote, txn(vec![put("a", "1")])).await.unwrap();
    let conditions = [
        Precondition { absent: true, ..Default::default() },
        Precondition { uid: Some(Uid::new("other").unwrap()), ..Default::default() },
        Precondition { revision: Some(Revision(made.revision.0 + 1)), ..Default::default() },
        Precondition { generation: Some(Generation(9)), ..Default::default() },
    ];
    for condition in conditions {
        let error = commit(&remote, one(step(put("a", "2"), condition))).await.unwrap_err();
        assert!(matches!(&error, CommitError::Conflict { key: of, .. } if *of == key("a")), "{error:?}");
    }
    let holds = Precondition { revision: Some(made.revision), ..Default::default() };
    let outcome = commit(&remote, one(step(put("a", "2"), holds))).await.unwrap();
    assert_eq!(outcome.outcomes[0].effect, Effect::Updated);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_another_is_foreign_unless_it_is_taken_over() {
    let world = World::start();
    let remote = world.remote();
    commit(&remote, by("other", txn(vec![put("a", "1")]))).await.unwrap();
    let error = commit(&remote, txn(vec![put("a", "2")])).await.unwrap_err();
    assert!(matches!(&error, CommitError::Foreign { key: of, .. } if *of == key("a")), "{error:?}");
    let taken = Step { take_over: true, ..Step::from(put("a", "2")) };
    commit(&remote, one(taken)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_older_instance_is_fenced() {
    let world = World::start();
    let remote = world.remote();
    commit(&remote, Txn { fence: 2, ..txn(vec![put("a", "1")]) }).await.unwrap();
    let error = commit(&remote, Txn { fence: 1, ..txn(vec![put("a", "2")]) }).await.unwrap_err();
    assert!(matches!(error, CommitError::Fenced(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_they_are_done() {
    let world = World::start();
    let remote = world.remote();
    commit(&remote, txn(vec![put("a", "1")])).await.unwrap();
    commit(&remote, txn(vec![finalizers("a", &["clean"], &[])])).await.unwrap();
    let deleting = commit(&remote, txn(vec![delete("a")])).await.unwrap();
    assert_eq!(deleting.outcomes[0].effect, Effect::Deleting);
    commit(&remote, txn(vec![finalizers("a", &[], &["clean"])])).await.unwrap();
    assert!(world.holds().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_status_of_nothing_is_not_found() {
    let world = World::start();
    let status = Op::Status(StatusDraft { key: key("a"), status: packed("up"), observed: Generation(1) });
    let error = commit(&world.remote(), txn(vec![status])).await.unwrap_err();
    assert_eq!(error, CommitError::NotFound(key("a")));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_in_itself_is_invalid() {
    let world = World::start();
    let remote = world.remote();
    let twice = commit(&remote, txn(vec![put("a", "1"), put("a", "2")])).await.unwrap_err();
    assert!(matches!(&twice, CommitError::Invalid { key: Some(of), .. } if *of == key("a")), "{twice:?}");
    let broken = Op::Upsert(Draft { spec: bytes::Bytes::from_static(&[0xff]), ..draft("a", "") });
    let broken = commit(&remote, txn(vec![broken])).await.unwrap_err();
    assert!(matches!(&broken, CommitError::Invalid { key: Some(of), .. } if *of == key("a")), "{broken:?}");
    let other = Remote::builder("http://bus")
        .connector(world.net.clone())
        .identity("somebody")
        .build()
        .unwrap();
    let denied = commit(&other, txn(vec![put("a", "1")])).await.unwrap_err();
    assert!(matches!(&denied, CommitError::Invalid { key: None, .. }), "{denied:?}");
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_goes_away_is_unavailable_and_is_found_again() {
    let mut world = World::start();
    let remote = world.remote();
    commit(&remote, txn(vec![put("a", "1")])).await.unwrap();
    world.kill();
    for _ in 0..2 {
        let error = commit(&remote, txn(vec![put("a", "2")])).await.unwrap_err();
        assert!(matches!(error, CommitError::Unavailable(_)), "{error:?}");
    }
    world.begin();
    commit(&remote, txn(vec![put("a", "2")])).await.unwrap();
    world.net.cut();
    // Whether it notices the cut before or while it calls: the next call is answered.
    commit(&remote, txn(vec![put("a", "3")])).await.ok();
    commit(&remote, txn(vec![put("a", "3")])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_answered_is_given_up_and_the_next_one_connects_anew() {
    let world = World::start();
    let remote = world.remote();
    commit(&remote, txn(vec![put("a", "1")])).await.unwrap();
    world.net.freeze();
    let begun = Instant::now();
    let error = commit(&remote, txn(vec![put("a", "2")])).await.unwrap_err();
    assert!(matches!(error, CommitError::Unavailable(_)), "{error:?}");
    assert!(begun.elapsed() <= Duration::from_secs(11));
    commit(&remote, txn(vec![put("a", "2")])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_endpoint_is_tried() {
    let world = World::synced().await;
    for host in [NOWHERE, SILENT] {
        let remote = Remote::builder(host).endpoint("bus").connector(world.net.clone()).build().unwrap();
        commit(&remote, txn(vec![put("a", "1")])).await.unwrap();
        let mut watcher = Watcher::new(remote.watch(&kind(), None));
        watcher.settled().await;
        assert_eq!(watcher.faces(), world.holds());
    }
}

#[tokio::test(start_paused = true)]
async fn leases_travel_with_a_transaction() {
    let world = World::start();
    let guard = Guard { lease: "leader".into(), token: 3 };
    // What the bus makes of a lease is its own affair; that it is asked for is ours.
    let answer = commit(&world.remote(), Txn { leases: vec![guard], ..txn(vec![put("a", "1")]) }).await;
    assert!(matches!(answer, Ok(_) | Err(CommitError::Fenced(_))), "{answer:?}");
}

#[test]
fn an_address_or_identity_that_is_none_is_refused() {
    assert!(matches!(Remote::connect("ftp://bus"), Err(RemoteError::Endpoint(_))));
    assert!(matches!(Remote::builder("bus:7400").endpoint("").build(), Err(RemoteError::Endpoint(_))));
    assert!(matches!(Remote::builder("bus:7400").identity("a\nb").build(), Err(RemoteError::Identity(_))));
    assert!(Remote::connect("bus:7400").is_ok(), "without a runtime, and without a bus");
}
