//! The acceptance scenarios that concern the store and the bus, on a real bus.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use nimbus_bus::Limits;
use nimbus_core::{Buckets, Digest};
use nimbus_wire::v1::{self, Mode, event::Change, frame::Frame, publisher_client::PublisherClient};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tonic::{Streaming, transport::Channel};

use crate::scripted::{KIND, Local, agent, config, frame, object, origins};

/// A client as the protocol describes it, without any checks of its own.
#[derive(Default)]
struct Mirror {
    held: BTreeMap<String, (v1::Object, Digest)>,
    position: Option<v1::Position>,
    mode: Mode,
    puts: usize,
    removals: Vec<v1::Removal>,
    /// Per name, the revisions that were seen.
    revisions: BTreeMap<String, Vec<u64>>,
    seen: Vec<String>,
}

impl Mirror {
    fn resume(&self) -> v1::Resume {
        let mut buckets = Buckets::default();
        self.held.values().for_each(|(_, digest)| buckets.toggle(*digest));
        v1::Resume {
            position: self.position,
            root: buckets.root().as_bytes().to_vec().into(),
            buckets: buckets.to_vec().into(),
            origins: origins(),
        }
    }

    /// Reads until it holds everything up to `revision`.
    async fn read_to(&mut self, frames: &mut Streaming<v1::Frame>, revision: u64) {
        (self.puts, self.removals) = (0, Vec::new());
        loop {
            let arrived = match frame(frames).await.unwrap() {
                Frame::Welcome(welcome) => {
                    self.mode = welcome.mode();
                    self.position = Some(v1::Position { revision: 0, ..welcome.position.unwrap() });
                    0
                }
                Frame::SnapshotBegin(_) => {
                    self.seen.clear();
                    0
                }
                Frame::Batch(batch) => {
                    batch.events.into_iter().for_each(|event| self.take(event));
                    batch.revision
                }
                Frame::SnapshotEnd(end) => end.revision,
                Frame::Bookmark(bookmark) => {
                    let root: Digest = self.held.values().map(|(_, digest)| *digest).collect();
                    assert_eq!(root.as_bytes()[..], bookmark.digest[..]);
                    bookmark.revision
                }
                Frame::Notice(_) => 0,
            };
            if arrived > 0 {
                self.position.as_mut().unwrap().revision = arrived;
            }
            if arrived >= revision && arrived > 0 {
                return;
            }
        }
    }

    fn take(&mut self, event: v1::Event) {
        match event.change.unwrap() {
            Change::Put(put) => {
                self.puts += 1;
                self.revisions.entry(put.name.clone()).or_default().push(put.revision);
                let digest = Digest::from_slice(&event.digest).unwrap();
                self.held.insert(put.name.clone(), (put, digest));
            }
            Change::Delete(end) => {
                self.revisions.entry(end.name.clone()).or_default().push(end.revision);
                self.held.remove(&end.name);
                self.removals.push(end);
            }
        }
    }
}

async fn apply(publisher: &mut PublisherClient<Channel>, ops: Vec<v1::op::Op>) -> u64 {
    let ops = ops.into_iter().map(|op| v1::Op { op: Some(op), ..Default::default() }).collect();
    let request = v1::ApplyRequest { publisher: "controller".into(), ops, ..Default::default() };
    publisher.apply(request).await.unwrap().into_inner().revision
}

fn upsert(name: &str, bytes: usize) -> v1::op::Op {
    v1::op::Op::Upsert(object(name, bytes))
}

fn labelled(name: &str, tier: &str) -> v1::op::Op {
    let labels = [("tier".to_owned(), tier.to_owned())].into();
    v1::op::Op::Upsert(v1::Object { labels, ..object(name, 1) })
}

fn delete(name: &str) -> v1::op::Op {
    v1::op::Op::Delete(v1::Key { kind: KIND.into(), name: name.into(), ..Default::default() })
}

/// Scenario 2 (H02, H08).
#[tokio::test]
async fn ten_thousand_random_writes_from_sixteen_tasks_reach_everybody_in_order() {
    let local = Local::start(config());
    local.sync(0, 0).await;
    let mut readers = Vec::new();
    for n in 0..4 {
        let frames = local.bus().await.subscribe(agent(&format!("agent-{n}"))).await.unwrap().into_inner();
        readers.push((Mirror::default(), frames));
    }
    let writes = AtomicU64::new(0);
    let writer = |task: u64| {
        let (local, writes) = (&local, &writes);
        async move {
            let mut random = SmallRng::seed_from_u64(task);
            let mut publisher = PublisherClient::new(local.channel().await);
            while writes.fetch_add(1, Ordering::Relaxed) < 10_000 {
                let name = format!("o{}", random.next_u32() % 100);
                let op = if random.next_u32() % 4 == 0 {
                    delete(&name)
                } else {
                    upsert(&name, (random.next_u32() % 50) as usize)
                };
                apply(&mut publisher, vec![op]).await;
                if random.next_u32() % 64 == 0 {
                    tokio::time::sleep(Duration::from_micros(u64::from(random.next_u32() % 500))).await;
                }
            }
        }
    };
    let all = (0..16).map(writer);
    futures_join(all).await;
    let state = local.bus.store().state();
    let expected: Vec<_> = state
        .kinds()
        .flat_map(|(_, kind)| kind.all().iter(None))
        .map(|record| (record.key().name().to_owned(), record.revision().0))
        .collect();
    for (mirror, frames) in &mut readers {
        mirror.read_to(frames, state.head().0).await;
        let held: Vec<_> = mirror.held.iter().map(|(name, (object, _))| (name.clone(), object.revision)).collect();
        let mut expected = expected.clone();
        expected.sort();
        assert_eq!(held, expected);
        for (name, revisions) in &mirror.revisions {
            assert!(revisions.is_sorted_by(|a, b| a < b), "{name}: {revisions:?}");
        }
    }
}

/// Scenario 3 (H23), in the small; the measurement with a million updates is in nimbus-bench.
#[tokio::test]
async fn a_subscriber_that_stalls_through_many_updates_ends_exact_with_each_object_once() {
    let limits = Limits { frame_bytes: 4 << 10, ..Limits::default() };
    let local = Local::start(nimbus_bus::Config { limits, ..config() });
    local.sync(100, 100).await;
    let request = v1::SubscribeRequest { credit_bytes: 1, ..agent("stalled") };
    let mut bus = local.bus().await;
    let mut frames = bus.subscribe(request).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
    let mut publisher = PublisherClient::new(local.channel().await);
    let mut head = 0;
    for round in 0..200 {
        let ops = (0..100).map(|n| upsert(&format!("o{n}"), 100 + round)).collect();
        head = apply(&mut publisher, ops).await;
    }
    let report =
        v1::ReportRequest { session: welcome.session, sequence: 1, received_bytes: u64::MAX / 2, ..Default::default() };
    bus.report_once(report).await.unwrap();
    let mut mirror = Mirror { position: welcome.position, ..Mirror::default() };
    mirror.read_to(&mut frames, head).await;
    assert_eq!(mirror.held.len(), 100);
    assert!(mirror.held.values().all(|(object, _)| object.revision == head));
    // The snapshot that had begun before the stall, and then every object once: 20,000 updates are 200 events.
    assert!(mirror.puts <= 200, "{} puts", mirror.puts);
}

/// Scenario 4 (H24).
#[tokio::test]
async fn three_changes_while_away_are_three_events_and_no_relist() {
    let local = Local::start(config());
    local.sync(50, 10).await;
    let filter = Some(v1::Filter { selector: "!absent".into(), ..Default::default() });
    for request in [agent("plain"), v1::SubscribeRequest { filter, ..agent("filtered") }] {
        let mut mirror = Mirror::default();
        let head = local.bus.store().state().head().0;
        let mut frames = local.bus().await.subscribe(request.clone()).await.unwrap().into_inner();
        mirror.read_to(&mut frames, head).await;
        drop(frames);
        let mut publisher = PublisherClient::new(local.channel().await);
        let name = format!("new-{}", request.agent);
        apply(&mut publisher, vec![upsert("o1", 20 + request.agent.len())]).await;
        apply(&mut publisher, vec![upsert(&name, 20)]).await;
        let head = apply(&mut publisher, vec![delete(if request.filter.is_some() { "o3" } else { "o2" })]).await;
        let again = v1::SubscribeRequest { resume: Some(mirror.resume()), ..request.clone() };
        let mut frames = local.bus().await.subscribe(again).await.unwrap().into_inner();
        mirror.read_to(&mut frames, head).await;
        assert_eq!((mirror.mode, mirror.puts, mirror.removals.len()), (Mode::Delta, 2, 1), "{}", request.agent);

        // Past the horizon, only what differs travels: the buckets of two objects.
        drop(frames);
        apply(&mut publisher, vec![upsert("o4", 30 + request.agent.len())]).await;
        apply(&mut publisher, vec![delete(&name)]).await;
        let head = apply(&mut publisher, vec![upsert("o5", 30 + request.agent.len())]).await;
        local.bus.store().trim(nimbus_core::Revision(head));
        let again = v1::SubscribeRequest { resume: Some(mirror.resume()), ..request.clone() };
        let mut frames = local.bus().await.subscribe(again).await.unwrap().into_inner();
        mirror.read_to(&mut frames, head).await;
        assert_eq!(mirror.mode, Mode::Digest);
        assert!(mirror.puts >= 2 && mirror.puts < 8, "{} puts", mirror.puts);
    }
}

/// Scenario 8 (H30, F16, F17).
#[tokio::test]
async fn an_object_that_is_updated_out_of_a_filter_and_back_is_removed_and_put() {
    let local = Local::start(config());
    local.sync(0, 0).await;
    let filter = Some(v1::Filter { selector: "tier=web".into(), ..Default::default() });
    let mut mirror = Mirror::default();
    let request = v1::SubscribeRequest { filter, ..agent("a") };
    let mut frames = local.bus().await.subscribe(request).await.unwrap().into_inner();
    let mut publisher = PublisherClient::new(local.channel().await);
    for round in 0..5 {
        let head = apply(&mut publisher, vec![labelled("x", "web")]).await;
        mirror.read_to(&mut frames, head).await;
        assert!(mirror.held.contains_key("x"), "round {round}");
        let head = apply(&mut publisher, vec![labelled("x", "db")]).await;
        mirror.read_to(&mut frames, head).await;
        assert!(mirror.held.is_empty(), "round {round}");
        assert!(mirror.removals.iter().all(|end| end.out_of_scope));
    }
    let head = apply(&mut publisher, vec![delete("x"), labelled("y", "web")]).await;
    mirror.read_to(&mut frames, head).await;
    assert_eq!(mirror.removals, [], "the end of what was not seen is not told");
}

/// Scenario 13 (H26): positions are numbers.
#[tokio::test]
async fn revisions_that_cross_from_nine_to_ten_are_resumed_as_numbers() {
    let local = Local::start(config());
    local.sync(0, 0).await;
    let mut publisher = PublisherClient::new(local.channel().await);
    let mut mirror = Mirror::default();
    for n in 1..=9 {
        assert_eq!(apply(&mut publisher, vec![upsert(&format!("o{n}"), n)]).await, n as u64);
    }
    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    mirror.read_to(&mut frames, 9).await;
    drop(frames);
    assert_eq!(apply(&mut publisher, vec![upsert("o10", 1)]).await, 10);
    let again = v1::SubscribeRequest { resume: Some(mirror.resume()), ..agent("a") };
    let mut frames = local.bus().await.subscribe(again).await.unwrap().into_inner();
    mirror.read_to(&mut frames, 10).await;
    assert_eq!((mirror.mode, mirror.puts), (Mode::Delta, 1));
}

/// Whoever went on from a position with changes did not know whether these were all before the next bookmark, which may be many
/// seconds later: a controller that takes over from another one must know (F13).
#[tokio::test]
async fn who_goes_on_from_a_position_is_told_at_once_when_these_were_all_changes() {
    let hourly = nimbus_bus::Config { bookmark_interval: Duration::from_secs(3600), ..config() };
    let local = Local::start(hourly);
    local.sync(0, 0).await;
    let mut publisher = PublisherClient::new(local.channel().await);
    let filter = Some(v1::Filter { selector: "tier=web".into(), ..Default::default() });
    let request = v1::SubscribeRequest { filter, ..agent("a") };
    let first = apply(&mut publisher, vec![labelled("x", "web")]).await;
    let mut mirrors = [Mirror::default(), Mirror::default()];
    let mut streams = Vec::new();
    for mirror in &mut mirrors {
        let mut frames = local.bus().await.subscribe(request.clone()).await.unwrap().into_inner();
        mirror.read_to(&mut frames, first).await;
        streams.push(frames);
    }
    // One of them stays, and is sent the change in a group that ends there. The other one finds this group.
    let [mut back, mut stays] = mirrors;
    drop(streams.remove(0));
    let second = apply(&mut publisher, vec![labelled("y", "web")]).await;
    stays.read_to(&mut streams[0], second).await;
    let head = apply(&mut publisher, vec![labelled("z", "db")]).await;
    let again = v1::SubscribeRequest { resume: Some(back.resume()), ..request };
    let mut frames = local.bus().await.subscribe(again).await.unwrap().into_inner();
    back.read_to(&mut frames, head).await;
    assert_eq!((back.mode, back.puts, back.held.len()), (Mode::Delta, 1, 2));
    let next = apply(&mut publisher, vec![labelled("x", "db")]).await;
    back.read_to(&mut frames, next).await;
    assert_eq!(back.held.len(), 1);
}

/// F01, F22: another life of a name is told apart, also by who was away.
#[tokio::test]
async fn a_name_that_was_deleted_and_created_again_has_another_uid_for_every_reader() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut mirror = Mirror::default();
    let head = local.bus.store().state().head().0;
    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    mirror.read_to(&mut frames, head).await;
    let before = mirror.held["o0"].0.uid.clone();
    drop(frames);
    let mut publisher = PublisherClient::new(local.channel().await);
    apply(&mut publisher, vec![delete("o0")]).await;
    let head = apply(&mut publisher, vec![upsert("o0", 10)]).await;
    let again = v1::SubscribeRequest { resume: Some(mirror.resume()), ..agent("a") };
    let mut frames = local.bus().await.subscribe(again).await.unwrap().into_inner();
    mirror.read_to(&mut frames, head).await;
    assert_eq!((mirror.puts, mirror.removals.len()), (1, 0));
    assert_ne!(mirror.held["o0"].0.uid, before);
}

async fn futures_join<F: Future>(futures: impl Iterator<Item = F>) {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        pending.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
