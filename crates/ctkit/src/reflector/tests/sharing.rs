//! One watch per kind, for as long as it is needed.

use std::time::Duration;

use nimbus_core::Kind;
use tokio::time::sleep;

use crate::{
    ReflectorConfig, Reflectors,
    fixtures::{Scripted, kind, position, record, soon},
};

const LINGER: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn users_of_a_kind_share_one_watch() {
    let (source, mut script) = Scripted::new();
    let reflectors = Reflectors::new(source, ReflectorConfig::default());
    let (one, two) = (reflectors.get(&kind()), reflectors.get(&kind()));
    let watch = script.next().await;
    watch.list(vec![record("a", 1)], position(1, 1)).await;
    soon(one.synced()).await;
    assert!(two.is_synced());
    let other = reflectors.get(&Kind::new("test.v1.Beta").unwrap());
    assert_eq!(script.next().await.kind, *other.kind());
    assert!(script.is_quiet());
    assert_eq!(reflectors.status().len(), 2);
    assert_eq!(reflectors.snapshot().list(&kind()).count(), 1);
}

/// H21: a watch that was torn down with its last user had to list everything again a moment later.
#[tokio::test(start_paused = true)]
async fn whoever_comes_back_within_the_linger_finds_the_watch_as_it_was() {
    let (source, mut script) = Scripted::new();
    let reflectors = Reflectors::new(source, ReflectorConfig { linger: LINGER, ..ReflectorConfig::default() });
    let reflector = reflectors.get(&kind());
    let watch = script.next().await;
    watch.list(vec![record("a", 1)], position(1, 1)).await;
    soon(reflector.synced()).await;
    drop(reflector);
    for _ in 0..5 {
        sleep(LINGER - Duration::from_secs(1)).await;
        // Each use begins the linger anew, however short it was.
        let again = reflectors.get(&kind());
        assert!(again.is_synced());
        let subscription = again.subscribe();
        drop(again);
        sleep(LINGER * 3).await;
        assert!(!watch.events.is_closed(), "a subscription is a use");
        drop(subscription);
    }
    assert!(script.is_quiet());
}

/// H21, the other way round: a watch that nobody needs costs the source and us.
#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_the_linger_and_begins_anew() {
    let (source, mut script) = Scripted::new();
    let reflectors = Reflectors::new(source, ReflectorConfig { linger: LINGER, ..ReflectorConfig::default() });
    let (reflector, clone) = (reflectors.get(&kind()), reflectors.get(&kind()));
    let watch = script.next().await;
    drop(reflector);
    sleep(LINGER * 2).await;
    assert!(!watch.events.is_closed(), "somebody is still there");
    drop(clone);
    sleep(LINGER - Duration::from_millis(1)).await;
    assert!(!watch.events.is_closed());
    sleep(Duration::from_millis(2)).await;
    assert!(watch.events.is_closed());
    assert!(reflectors.status().is_empty());

    let again = reflectors.get(&kind());
    let watch = script.next().await;
    assert_eq!(watch.from, None);
    watch.list(vec![record("a", 1)], position(1, 1)).await;
    soon(again.synced()).await;
}

/// F79: kinds are names; nobody has to know them when the program is built.
#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_has_heard_of_is_watched_until_it_exists() {
    let store = crate::fixtures::store(1, 100);
    let kind = Kind::new(&["made", "up", "At", "RunTime"].join(".")).unwrap();
    let reflectors = Reflectors::new(store.clone(), ReflectorConfig::default());
    let mut subscription = reflectors.get(&kind).subscribe();
    let batch = soon(subscription.next()).await;
    assert!(batch.keys.is_empty() && batch.listed.is_some());
    let key = nimbus_core::ObjectKey::new(kind, "", "first").unwrap();
    crate::fixtures::commit(&store, [crate::fixtures::put(&key, b"1")]);
    assert_eq!(soon(subscription.next()).await.keys[0].key, key);
}

#[tokio::test(start_paused = true)]
async fn when_everybody_is_gone_the_watches_end_at_once() {
    let (source, mut script) = Scripted::new();
    let reflectors = Reflectors::new(source, ReflectorConfig::default());
    let reflector = reflectors.get(&kind());
    let watch = script.next().await;
    drop(reflectors);
    sleep(LINGER * 2).await;
    assert!(!watch.events.is_closed(), "a reflector works without the registry that made it");
    drop(reflector);
    soon(watch.events.closed()).await;
}
