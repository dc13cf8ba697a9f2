use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use nimbus_core::{Kind, PublisherId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::readiness::{Readiness, Unready};

#[test]
fn a_kind_that_is_not_complete_names_whom_it_waits_for_as_far_as_there_is_room() {
    let missing = |count: usize| Unready::Kind {
        kind: Kind::new("demo.v1.Policy").unwrap(),
        publishers: (0..count).map(|at| PublisherId::new(&format!("p{at}")).unwrap()).collect(),
    };
    let cases = [
        (0, "kind demo.v1.Policy: waits for a sync, which no publisher has begun"),
        (2, "kind demo.v1.Policy: waits for the sync of p0, p1"),
        (8, "kind demo.v1.Policy: waits for the sync of p0, p1, p2, p3, p4, p5, p6, p7"),
        (11, "kind demo.v1.Policy: waits for the sync of p0, p1, p2, p3, p4, p5, p6, p7 and 3 more"),
    ];
    for (count, said) in cases {
        assert_eq!(missing(count).to_string(), said);
    }
}

/// Two calls looked one after the other, and said what they saw in the other order: the older answer was the last one, and
/// the one who gave it believed that all was said already. A bus that was not ready said that it was, until something changed.
#[tokio::test]
async fn what_was_seen_last_is_said_last() {
    let (health, _service) = tonic_health::server::health_reporter();
    let readiness = Readiness::new(health);
    let (is_ready, said) = (AtomicBool::new(true), Mutex::new(Vec::new()));
    let look = || is_ready.load(SeqCst);
    let (go_on, held) = oneshot::channel::<()>();
    let held = Mutex::new(Some(held));
    let said = &said;
    let slowly = |ready| {
        let held = held.lock().take();
        async move {
            if let Some(held) = held {
                held.await.unwrap();
            }
            said.lock().push(ready);
        }
    };
    let first = readiness.catch_up(look, slowly);
    let second = async {
        // The first one has looked.
        is_ready.store(false, SeqCst);
        readiness.mark();
        readiness.catch_up(look, |ready| async move { said.lock().push(ready) }).await;
    };
    let release = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        go_on.send(()).unwrap();
    };
    tokio::join!(biased; first, second, release);
    assert_eq!(said.lock().last(), Some(&false));
    readiness.catch_up(look, |ready| async move { panic!("{ready} was said already") }).await;
}
