//! How long it takes to list many objects, and to be told of one change among them.

use std::time::Duration;

use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::{
    Reflector, ReflectorConfig,
    fixtures::{commit, key, kind, put, store},
};

const OBJECTS: usize = 100_000;

/// A debug build on a busy machine is slow; a copy of every object, or a scan for every change, would be slower still.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_hundred_thousand_objects_are_listed_quickly_and_one_change_does_not_read_them_again() {
    // Another test may have been first; the figures are for whoever runs this one alone, with `--nocapture`.
    drop(tracing_subscriber::fmt().with_test_writer().try_init());
    let store = store(1, 100);
    let keys: Vec<ObjectKey> = (0..OBJECTS).map(|at| key(&format!("n{at}"))).collect();
    for part in keys.chunks(10_000) {
        commit(&store, part.iter().map(|key| put(key, b"1")));
    }
    let begin = Instant::now();
    let reflector = Reflector::start(store.clone(), &kind(), ReflectorConfig::default());
    let mut subscription = reflector.subscribe();
    let mut told = 0;
    loop {
        let batch = subscription.next().await;
        told += batch.keys.len();
        if batch.listed.is_some() {
            break;
        }
    }
    let listed = begin.elapsed();
    assert_eq!(told, OBJECTS);

    let begin = Instant::now();
    for key in &keys[..1_000] {
        commit(&store, [put(key, b"2")]);
        assert_eq!(subscription.next().await.keys.len(), 1);
    }
    let changed = begin.elapsed();
    tracing::info!(?listed, ?changed, "100,000 objects listed, 1,000 changes told");
    assert!(listed < PATIENCE && changed < PATIENCE, "listed in {listed:?}, 1,000 changes in {changed:?}");
}
