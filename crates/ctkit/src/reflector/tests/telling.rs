//! What subscribers are told, and what they read then.

use std::time::Duration;

use nimbus_core::{Backoff, Revision};
use nimbus_store::Op;
use tokio::time::{Instant, timeout};

use crate::{
    Batch, Change, Event, Reflector, ReflectorConfig, WatchEpoch, WatchError, WatchPhase,
    fixtures::{Script, Scripted, commit, key, kind, position, put, record, soon, store},
};

fn start() -> (Reflector, Script) {
    let (source, script) = Scripted::new();
    (Reflector::start(source, &kind(), ReflectorConfig::default()), script)
}

/// `+` is from a list, `=` a change.
fn told(batch: &Batch) -> Vec<String> {
    let mark = |boot| if boot { '+' } else { '=' };
    batch
        .keys
        .iter()
        .map(|woken| format!("{}{}", mark(woken.boot), woken.key.name()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_is_told_everything_and_then_what_changes() {
    let (reflector, mut script) = start();
    let watch = script.next().await;
    let mut early = reflector.subscribe();
    watch.say(Event::Listing(vec![record("a", 1)])).await;
    assert!(timeout(Duration::from_secs(1), early.next()).await.is_err(), "half a list says nothing");
    assert!(!reflector.is_synced());
    watch.list(vec![record("b", 2)], position(1, 2)).await;
    let batch = soon(early.next()).await;
    assert_eq!((told(&batch), batch.listed), (vec!["+a".into(), "+b".into()], Some(WatchEpoch(1))));
    soon(reflector.synced()).await;

    let mut late = reflector.subscribe();
    assert_eq!(soon(late.next()).await, batch, "whoever comes later is told the same");
    watch.say(Event::Changes(vec![Change::Put(record("a", 3))], position(1, 3))).await;
    for subscription in [&mut early, &mut late] {
        let batch = soon(subscription.next()).await;
        assert_eq!((told(&batch), batch.listed), (vec!["=a".into()], None));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_slow_subscriber_has_not_heard_is_conflated() {
    let (reflector, mut script) = start();
    let watch = script.next().await;
    watch.list(Vec::new(), position(1, 0)).await;
    let mut subscription = reflector.subscribe();
    for revision in 1..=50 {
        let name = if revision % 2 == 0 { "even" } else { "odd" };
        watch
            .say(Event::Changes(vec![Change::Put(record(name, revision))], position(1, revision)))
            .await;
    }
    soon(reflector.reach(Revision(50))).await;
    let batch = soon(subscription.next()).await;
    assert_eq!((told(&batch), batch.listed), (vec!["=odd".into(), "=even".into()], Some(WatchEpoch(1))));
}

/// H22: a referent's status was stale in another cache than the one that woke the referrer.
#[tokio::test(start_paused = true)]
async fn whoever_is_woken_reads_what_it_was_woken_for_or_newer() {
    let (reflector, mut script) = start();
    let watch = script.next().await;
    watch.list(Vec::new(), position(1, 0)).await;
    let mut subscription = reflector.subscribe();
    soon(subscription.next()).await;
    for revision in 1..=100 {
        watch
            .say(Event::Changes(vec![Change::Put(record("a", revision))], position(1, revision)))
            .await;
        assert_eq!(told(&soon(subscription.next()).await), ["=a"]);
        let snapshot = reflector.snapshot();
        assert!(snapshot.get(&key("a")).unwrap().revision() >= Revision(revision));
        assert!(snapshot.revision() >= Revision(revision));
    }
}

/// H17: a reactor that wrote and then read a stale cache undid, or did twice, what it had just done.
#[tokio::test(start_paused = true)]
async fn whoever_wrote_can_wait_until_it_reads_it() {
    let (reflector, mut script) = start();
    let watch = script.next().await;
    watch.list(Vec::new(), position(1, 4)).await;
    soon(reflector.reach(Revision(4))).await;
    let waiting = tokio::spawn({
        let reflector = reflector.clone();
        async move {
            reflector.reach(Revision(6)).await;
            reflector.snapshot().get(&key("a")).unwrap().revision()
        }
    });
    watch.say(Event::Changes(vec![Change::Put(record("b", 5))], position(1, 5))).await;
    soon(reflector.reach(Revision(5))).await;
    assert!(!waiting.is_finished());
    watch.say(Event::Changes(vec![Change::Put(record("a", 6))], position(1, 6))).await;
    assert_eq!(soon(waiting).await.unwrap(), Revision(6));
    // Revisions of another epoch mean nothing any more.
    let waiting = tokio::spawn({
        let reflector = reflector.clone();
        async move { reflector.reach(Revision(1000)).await }
    });
    tokio::task::yield_now().await;
    watch.list(Vec::new(), position(2, 1)).await;
    soon(waiting).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_written_to_a_store_can_be_read_at_once() {
    let store = store(1, 100);
    let reflector = Reflector::start(store.clone(), &kind(), ReflectorConfig::default());
    let revision = commit(&store, [put(&key("a"), b"1")]);
    soon(reflector.reach(revision)).await;
    assert!(reflector.snapshot().get(&key("a")).is_some());
    let mut subscription = reflector.subscribe();
    assert_eq!(told(&soon(subscription.next()).await), ["+a"]);
    commit(&store, [Op::Delete(key("a"))]);
    assert_eq!(told(&soon(subscription.next()).await), ["=a"]);
    assert!(reflector.snapshot().get(&key("a")).is_none());
    // Whoever wrote what was there already is told the newest revision, which may be of another kind, or of nothing.
    let other = nimbus_core::ObjectKey::new(nimbus_core::Kind::new("test.v1.Beta").unwrap(), "", "b").unwrap();
    let revision = commit(&store, [put(&other, b"1")]);
    soon(reflector.reach(revision)).await;
    commit(&store, [put(&key("brief"), b"1")]);
    let revision = commit(&store, [Op::Delete(key("brief"))]);
    soon(reflector.reach(revision)).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_off_is_taken_up_where_it_was() {
    let (reflector, mut script) = start();
    let mut subscription = reflector.subscribe();
    let watch = script.next().await;
    assert_eq!((watch.kind.clone(), watch.from), (kind(), None));
    watch.list(vec![record("a", 1), record("b", 2)], position(1, 2)).await;
    soon(subscription.next()).await;
    drop(watch);
    let watch = script.next().await;
    assert_eq!(watch.from, Some(position(1, 2)));
    // This one remembers too little, and lists again.
    watch.list(vec![record("b", 2), record("c", 5)], position(1, 5)).await;
    let batch = soon(subscription.next()).await;
    assert_eq!((told(&batch), batch.listed), (vec!["+a".into(), "+c".into()], Some(WatchEpoch(2))));
    assert!(reflector.snapshot().get(&key("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_refuses_is_asked_again_ever_more_slowly_and_everybody_can_see_why() {
    let (source, mut script) = Scripted::new();
    let backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(8) };
    let config = ReflectorConfig { backoff, seed: 3, ..ReflectorConfig::default() };
    let reflector = Reflector::start(source, &kind(), config);
    let begin = Instant::now();
    for attempt in 1..=20 {
        let watch = script.next().await;
        let refused = WatchError::Refused { kind: kind(), message: "no such API".into() };
        watch.events.send(Err(refused)).await.unwrap();
        watch.events.closed().await;
        let status = reflector.status();
        assert_eq!((status.phase, status.failures), (WatchPhase::Waiting, attempt));
        assert!(status.error.unwrap().contains("no such API"));
    }
    // Twenty waits of up to 8 s, half of that on average.
    let waited = begin.elapsed();
    assert!(waited > Duration::from_secs(20) && waited < Duration::from_secs(160), "{waited:?}");
    let watch = script.next().await;
    watch.list(vec![record("a", 1)], position(1, 1)).await;
    soon(reflector.synced()).await;
    let status = reflector.status();
    assert_eq!((status.phase, status.failures, status.error), (WatchPhase::Live, 0, None));
    assert_eq!(status.objects, 1);
}
