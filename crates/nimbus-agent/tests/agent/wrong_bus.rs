//! What an agent does when the bus is wrong, odd, or breaks off.

use std::time::Duration;

use nimbus_agent::Link;
use nimbus_wire::v1::{self, Mode, frame::Frame, notice::Notice};
use tokio::sync::oneshot;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{
    fake::{Fake, delete_event, put_event},
    recorder::Recorder,
    world::{Running, alpha_key},
};

pub(crate) fn run(fake: &Fake, recorder: &Recorder) -> Running {
    let agent = fake.builder(recorder).build().unwrap();
    let handle = agent.handle();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(agent.run_until(async { drop(stopped.await) }));
    Running { handle, task, stop }
}

/// B02: an event that got lost is noticed, healed and counted, and nothing is removed because of it.
#[tokio::test(start_paused = true)]
async fn a_lost_event_is_noticed_by_the_digest_and_healed() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let (a, b, c) = (put_event("a", "1", &[]), put_event("b", "1", &[]), put_event("c", "1", &[]));
    let first = fake.script();
    let mut agent = run(&fake, &recorder);
    first.welcome(1, Mode::Snapshot).await;
    first.snapshot(1, vec![a.clone(), b.clone()]).await;
    agent.settled().await;
    // The bus has sent `c`, but it never came.
    let second = fake.script();
    first.bookmark(2, &[a.clone(), b.clone(), c.clone()]).await;
    let asked = fake.asked(2).await;
    let resume = asked[1].1.resume.clone().unwrap();
    assert_eq!(resume.position, None, "its position cannot be believed");
    assert_eq!(resume.root, crate::fake::sum(&[a.clone(), b.clone()]));
    assert_eq!(resume.buckets.len(), 4096);
    assert_eq!(resume.origins[0].manager, "controller");
    second.welcome(2, Mode::Snapshot).await;
    second.snapshot(2, vec![a, b, c]).await;
    agent
        .until(|status| status.link == Link::InSync && status.objects == 3 && status.unfinished == 0)
        .await;
    assert_eq!(agent.handle.status().mismatches, 1);
    let calls: Vec<_> = recorder.calls().into_iter().filter(|call| call.starts_with("app")).collect();
    assert_eq!(calls.iter().filter(|call| call.starts_with("applied")).count(), 3, "each once: {calls:?}");
    assert!(!recorder.calls().iter().any(|call| call.starts_with("remove")));
    let told = fake
        .reported(|report| report.events.iter().any(|event| event.reason == "DigestMismatch"))
        .await;
    assert_eq!(told.session, 2);
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_does_not_add_up_is_asked_for_again() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let (a, b) = (put_event("a", "1", &[]), put_event("b", "1", &[]));
    let (first, second) = (fake.script(), fake.script());
    let mut agent = run(&fake, &recorder);
    first.welcome(1, Mode::Snapshot).await;
    first.say(Frame::SnapshotBegin(v1::SnapshotBegin::default())).await;
    first.batch(0, vec![a.clone()]).await;
    let digest = crate::fake::sum(&[a.clone(), b.clone()]);
    first.say(Frame::SnapshotEnd(v1::SnapshotEnd { revision: 1, objects: 2, digest })).await;
    second.welcome(2, Mode::Snapshot).await;
    second.snapshot(1, vec![a, b]).await;
    agent.settled().await;
    assert_eq!((agent.handle.status().mismatches, agent.handle.status().objects), (1, 2));
    agent.stop().await;
}

/// Invariant 5: a transaction that breaks off half-way was never there.
#[tokio::test(start_paused = true)]
async fn a_group_that_breaks_off_is_not_begun() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let a = put_event("a", "1", &[]);
    let (first, second) = (fake.script(), fake.script());
    let mut agent = run(&fake, &recorder);
    first.welcome(1, Mode::Snapshot).await;
    first.snapshot(1, vec![a.clone()]).await;
    agent.settled().await;
    recorder.take_calls();
    first.batch(0, vec![put_event("b", "1", &[]), delete_event("a")]).await;
    first.end(Status::unavailable("cut")).await;
    let asked = fake.asked(2).await;
    assert_eq!(asked[1].1.resume.clone().unwrap().position.unwrap().revision, 1);
    second.welcome(2, Mode::Delta).await;
    // The next group is what it is, and nothing of the one that broke off comes with it.
    let c = put_event("c", "1", &[]);
    second.batch(2, vec![c.clone()]).await;
    second.bookmark(2, &[a, c]).await;
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/c=1")).await;
    agent.settled().await;
    assert_eq!(recorder.calls(), ["apply Alpha/c=1 Changed", "applied Alpha/c=1"]);
    assert_eq!(agent.handle.status().mismatches, 0);
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_begins_again_is_taken_as_it_comes_the_second_time() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let (a, b) = (put_event("a", "1", &[]), put_event("b", "2", &[]));
    let script = fake.script();
    let mut agent = run(&fake, &recorder);
    script.welcome(1, Mode::Snapshot).await;
    script.snapshot(1, vec![]).await;
    agent.settled().await;
    script.batch(0, vec![put_event("b", "1", &[]), put_event("c", "1", &[])]).await;
    script.notice(Notice::GroupRestarted(v1::GroupRestarted {})).await;
    script.batch(0, vec![a.clone()]).await;
    script.batch(5, vec![b.clone()]).await;
    script.bookmark(5, &[a, b]).await;
    agent
        .until(|status| status.position.is_some_and(|at| at.revision.0 == 5) && status.unfinished == 0)
        .await;
    let applied: Vec<_> = recorder.calls().into_iter().filter(|call| call.starts_with("applied")).collect();
    assert_eq!(applied.len(), 2, "{applied:?}");
    assert_eq!(agent.handle.status().mismatches, 0);
    agent.stop().await;
}

/// F23: the bus says exactly when, and that is when.
#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed_to_the_millisecond() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let wait = Duration::from_millis(7_321);
    let mut details = ErrorDetails::new();
    details.set_retry_info(Some(wait));
    fake.refuse(Status::with_error_details(Code::Unavailable, "too many snapshots", details));
    let script = fake.script();
    let mut agent = run(&fake, &recorder);
    let asked = fake.asked(2).await;
    let waited = asked[1].0 - asked[0].0;
    assert!(waited >= wait && waited < wait + Duration::from_millis(50), "{waited:?}");
    script.welcome(1, Mode::Snapshot).await;
    script.snapshot(1, vec![]).await;
    agent.settled().await;
    agent.stop().await;
}

/// Full jitter: waits grow, and differ from agent to agent.
#[tokio::test(start_paused = true)]
async fn attempts_to_reach_a_bus_back_off_and_are_spread() {
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..8 {
        let (fake, recorder) = (Fake::start(), Recorder::default());
        let agent = fake.builder(&recorder).seed(seed).build().unwrap();
        let running = tokio::spawn(agent.run_until(std::future::pending()));
        let asked = fake.asked(12).await;
        let waits: Vec<_> = asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        firsts.insert(waits[0]);
        let (early, late): (Duration, Duration) = (waits[..4].iter().sum(), waits[7..].iter().sum());
        assert!(late > early, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(61)), "{waits:?}");
        running.abort();
    }
    assert!(firsts.len() > 4, "{firsts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_report_is_sent_when_the_bus_wants_one() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let script = fake.script();
    let mut agent = run(&fake, &recorder);
    script.welcome(1, Mode::Snapshot).await;
    script.snapshot(4, vec![put_event("a", "1", &[alpha_key("missing")])]).await;
    agent.until(|status| status.link == Link::InSync).await;
    // What waits for longer than a moment becomes an exception, and lets the watermark go.
    let waiting = fake.reported(|report| report.applied == 4).await;
    assert_eq!(waiting.exceptions[0].waits_for[0].name, "missing");
    assert_eq!(waiting.exceptions[0].phase(), v1::Phase::Pending);
    script.notice(Notice::ReportWanted(v1::ReportWanted {})).await;
    let full = fake.reported(|report| report.full && report.sequence > waiting.sequence).await;
    assert_eq!((full.received, full.applied, full.exceptions.len()), (4, 4, 1));
    agent.stop().await;
}

/// F78: a correct bus refuses cycles; an agent that meets one says so, and everything else goes on.
#[tokio::test(start_paused = true)]
async fn a_cycle_is_reported_and_holds_up_nobody_else() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let script = fake.script();
    let mut agent = run(&fake, &recorder);
    script.welcome(1, Mode::Snapshot).await;
    let objects = vec![
        put_event("x", "1", &[alpha_key("y")]),
        put_event("y", "1", &[alpha_key("x")]),
        put_event("free", "1", &[]),
    ];
    script.snapshot(1, objects).await;
    agent
        .until(|status| status.link == Link::InSync && status.failed == 2 && status.running == 0)
        .await;
    assert_eq!(recorder.world().keys().collect::<Vec<_>>(), ["Alpha/free"]);
    let told = fake.reported(|report| report.exceptions.len() == 2).await;
    assert!(told.exceptions.iter().all(|exception| exception.code == "CYCLE"), "{told:?}");
    // Once it is broken, both are applied.
    script.batch(2, vec![put_event("y", "2", &[])]).await;
    agent
        .until(|status| status.unfinished == 0 && status.position.is_some_and(|at| at.revision.0 == 2))
        .await;
    assert_eq!(recorder.world().len(), 3);
    recorder.check();
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn frames_that_make_no_sense_end_the_subscription_and_nothing_else() {
    let nonsense = [
        Frame::Batch(v1::Batch {
            events: vec![v1::Event { digest: bytes::Bytes::new(), ..put_event("a", "1", &[]) }],
            revision: 2,
        }),
        Frame::SnapshotEnd(v1::SnapshotEnd { revision: 3, ..Default::default() }),
        Frame::SnapshotBegin(v1::SnapshotBegin { buckets: vec![1, 2, 3].into(), ..Default::default() }),
        Frame::Welcome(v1::Welcome::default()),
        Frame::Batch(v1::Batch { events: vec![v1::Event { ..delete_event("not a name!") }], revision: 2 }),
    ];
    for frame in nonsense {
        let (fake, recorder) = (Fake::start(), Recorder::default());
        let a = put_event("a", "1", &[]);
        let (first, second) = (fake.script(), fake.script());
        let mut agent = run(&fake, &recorder);
        first.welcome(1, Mode::Snapshot).await;
        first.snapshot(1, vec![a.clone()]).await;
        agent.settled().await;
        first.say(frame.clone()).await;
        fake.asked(2).await;
        second.welcome(2, Mode::Unchanged).await;
        second.bookmark(9, &[a]).await;
        agent.until(|status| status.position.is_some_and(|at| at.revision.0 == 9)).await;
        assert_eq!(recorder.world().len(), 1, "{frame:?}");
        agent.stop().await;
    }
}
