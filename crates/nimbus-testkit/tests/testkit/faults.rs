//! What goes wrong between controllers, the API and the bus.

use std::time::Duration;

use ctkit::{CommitError, Draft};

use crate::kinds::{Policy, pairs, policy, published, world};

fn unavailable() -> CommitError {
    CommitError::Unavailable("not now".to_owned())
}

#[tokio::test]
async fn transactions_that_fail_are_tried_again() {
    let world = world();
    world.settled().await;
    world.target().fail_next_commits(5, &unavailable());
    world.source().fail_next_commits(5, &unavailable());
    let web = world.apply(policy(&["a"], "443")).await;
    world.until("all faults of the bus", async || world.target().left() == 0).await;
    world.until("all faults of the API", async || world.source().left() == 0).await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]));
    assert!(world.ready(&web).unwrap().is_ready);
}

#[tokio::test]
async fn an_answer_that_is_lost_does_no_harm() {
    let world = world();
    world.settled().await;
    world.target().lose_next_answers(3);
    world.source().lose_next_answers(3);
    let web = world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]));
    assert!(world.ready(&web).unwrap().is_ready);
    world.delete(&web).await;
    world.settled().await;
    assert_eq!(published(&world), []);
}

#[tokio::test]
async fn what_is_down_is_waited_for() {
    let world = world();
    world.settled().await;
    world.target().down();
    let web = world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    world.advance(Duration::from_secs(600)).await;
    assert_eq!(published(&world), []);
    world.target().up();
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]));

    world.source().down();
    world.apply(policy(&["a"], "80")).await;
    world.settled().await;
    assert_eq!(world.ready(&web).unwrap().generation.0, 1, "nothing can be written");
    world.source().up();
    world.until("a status", async || world.ready(&web).unwrap().generation.0 == 2).await;
    assert_eq!(published(&world), pairs([("a", 80)]));
}

#[tokio::test]
async fn what_is_slow_is_waited_for() {
    let world = world();
    world.source().latency(Duration::from_secs(2));
    world.target().latency(Duration::from_secs(3));
    let web = world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]));
    assert!(world.ready(&web).unwrap().is_ready);
}

#[tokio::test]
async fn controllers_that_are_cut_off_come_back() {
    let world = world();
    world.settled().await;
    for cut in [true, false] {
        if cut {
            world.link().cut();
        } else {
            world.link().freeze();
        }
        let port = if cut { 1 } else { 2 };
        world.apply(policy(&["a"], &port.to_string())).await;
        world.settled().await;
        world.advance(Duration::from_secs(300)).await;
        assert_ne!(published(&world), pairs([("a", port)]));
        world.link().heal();
        world.until("the rules", async || published(&world) == pairs([("a", port)])).await;
    }
}

/// Two transactions were under way when the bus took nothing: the first was refused, and its shard began to wait. The second
/// got through, which ended the waiting without letting anybody run again, and the controller never reacted to anything
/// any more.
#[tokio::test]
async fn a_transaction_that_gets_through_after_one_that_does_not_stops_nobody() {
    let world = world();
    world.settled().await;
    let target = world.target();
    target.latency(Duration::from_secs(1));
    target.fail_next_commits(1, &unavailable());
    let db = |port: &str| Draft::new("db", Policy { zones: vec!["b".to_owned()], port: port.to_owned() });
    let is_published = |expected: [(&str, u32); 2]| {
        let mut found = published(&world);
        found.sort_unstable();
        found == pairs(expected)
    };
    world.apply(policy(&["a"], "443")).await;
    // So that the second is answered before the first is tried again, which is at most 100 ms later.
    world.advance(Duration::from_millis(1)).await;
    world.apply(db("80")).await;
    world.until("both", async || is_published([("a", 443), ("b", 80)])).await;
    assert_eq!(target.left(), 0);
    world.apply(db("81")).await;
    world.until("what comes later", async || is_published([("a", 443), ("b", 81)])).await;
}
