//! A client that speaks the protocol by itself, from its description, and is exact at every position.

mod holding;

use std::time::Duration;

use nimbus_wire::v1::{self, Mode, bus_client::BusClient, event::Change, frame::Frame, notice::Notice};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::{sleep, timeout};

use self::holding::{Holding, Seen};
use crate::{
    hosts::{PATIENCE, connect, endpoint, keep_jumping},
    model::{Key, TIER, WRITE, ZONE},
    net::Line,
    setup::{ReaderSetup, pick},
    world::{Phase, World, millis},
};

/// A reader, for as long as its process lives.
struct Reader {
    world: World,
    setup: ReaderSetup,
    holding: Holding,
}

/// Frames come at least every two seconds.
const SILENCE: Duration = Duration::from_secs(7);

/// Runs until it is killed, and then knows nothing.
pub(crate) async fn run(world: World, setup: ReaderSetup, line: Line) -> turmoil::Result {
    let mut rng = world.rng(&setup.name);
    tokio::spawn(keep_jumping(world.clone(), setup.name.clone()));
    let mut reader = Reader { world, setup, holding: Holding::default() };
    reader.publish();
    loop {
        let why = match reader.live(&line, &mut rng).await {
            Ok(()) => "the stream ended".to_owned(),
            Err(why) => why,
        };
        reader.note(format!("begins again: {why}"));
        reader.holding.disconnect();
        reader.publish();
        sleep(millis(&mut rng, 10, 600)).await;
    }
}

fn key(kind: &str, name: &str) -> Key {
    Key::new(kind, name)
}

// === impl Reader ===

impl Reader {
    fn note(&self, what: impl Into<String>) {
        self.world.note(&self.setup.name, what);
    }

    fn violate(&self, property: &str, what: &str) {
        self.world.violate(&self.setup.name, property, what);
    }

    /// Shows what it holds to whoever waits for the end.
    fn publish(&self) {
        let held = self.holding.held.iter().map(|(key, seen)| (key.clone(), seen.number)).collect();
        let viewer = self.setup.viewer.clone();
        let reading = crate::world::Reading { viewer, held, exact: self.holding.is_exact() };
        self.world.lock().readers.insert(self.setup.name.clone(), reading);
    }

    fn request(&self, rng: &mut SmallRng) -> v1::SubscribeRequest {
        let viewer = &self.setup.viewer;
        let filter = viewer
            .tier
            .map(|tier| v1::Filter { selector: format!("{TIER}={tier}"), ..Default::default() });
        let (agent, zone) = viewer.agent.clone().unwrap_or_default();
        // Whoever offers less is sent more, except where nothing may be sent.
        let offers = if self.world.phase() == Phase::Chaos { rng.random_range(0..5) } else { 4 };
        v1::SubscribeRequest {
            kinds: viewer.kinds.iter().map(|&kind| kind.to_owned()).collect(),
            filter,
            agent_labels: if agent.is_empty() { Default::default() } else { [(ZONE.to_owned(), zone)].into() },
            agent,
            resume: self.holding.resume(offers != 0, offers > 1, offers > 2),
            ..Default::default()
        }
    }

    async fn live(&mut self, line: &Line, rng: &mut SmallRng) -> Result<(), String> {
        let channel = connect(line).await?;
        let mut client = BusClient::with_origin(channel, endpoint().uri().clone());
        let request = self.request(rng);
        let resumes = request.resume.clone().unwrap_or_default();
        let offer = format!(
            "subscribes {:?}, root {}, buckets {}",
            resumes.position.map(|at| (at.epoch, at.revision)),
            !resumes.root.is_empty(),
            !resumes.buckets.is_empty()
        );
        self.note(offer);
        let opened = timeout(PATIENCE, client.subscribe(request)).await.map_err(|_| "no answer".to_owned())?;
        let mut frames = opened.map_err(|status| status.message().to_owned())?.into_inner();
        let lazy = pick(rng, &[0, 0, 100, 1_500]);
        loop {
            while self.world.lock().stalled.contains(&self.setup.name) {
                sleep(Duration::from_millis(50)).await;
            }
            if self.setup.slow && lazy > 0 && self.world.phase() == Phase::Chaos {
                sleep(millis(rng, 0, lazy)).await;
            }
            let frame = timeout(SILENCE, frames.message()).await.map_err(|_| "silence".to_owned())?;
            let Some(frame) = frame.map_err(|status| status.message().to_owned())? else { return Ok(()) };
            match frame.frame {
                None => self.violate("Reliable", "an empty frame"),
                Some(frame) => self.take(frame),
            }
            self.publish();
            if self.world.has_failed() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Welcome(welcome) => {
                let at = welcome.position.unwrap_or_default();
                self.note(format!(
                    "is welcome: {:?} because {}, epoch {:x}, {}",
                    welcome.mode(),
                    welcome.reason,
                    at.epoch,
                    at.revision
                ));
                if welcome.mode() == Mode::Delta && self.holding.position.is_none_or(|mine| mine.epoch != at.epoch) {
                    self.violate("Resumable", "a delta for somebody who has no position of this history");
                }
                self.holding.welcome(at, welcome.mode());
            }
            Frame::SnapshotBegin(begin) => {
                self.note(format!("a snapshot begins, of everything: {}", begin.buckets.is_empty()));
                self.holding.begin_snapshot(&begin.buckets);
            }
            Frame::Batch(batch) => self.batch(batch),
            Frame::SnapshotEnd(end) => {
                self.note(format!("the snapshot ends at {}", end.revision));
                let swept = self.holding.sweep();
                for (key, seen) in swept {
                    self.check_removal(&key, seen.number, "swept");
                }
                self.reach(end.revision, &end.digest, end.objects);
            }
            Frame::Bookmark(bookmark) => {
                if !self.holding.staged.is_empty() {
                    self.violate("Bookmarkable", "a bookmark in the middle of a group");
                }
                self.reach(bookmark.revision, &bookmark.digest, bookmark.objects);
            }
            Frame::Notice(notice) => {
                self.note(format!("notice: {:?}", notice.notice));
                if let Some(Notice::GroupRestarted(_)) = notice.notice {
                    self.holding.staged.clear();
                }
            }
        }
    }

    fn batch(&mut self, batch: v1::Batch) {
        let snapshot = self.holding.snapshot.is_some();
        for event in batch.events {
            let quiet = self.world.phase() == Phase::Quiet;
            let change = match event.change {
                None => return self.violate("Reliable", "an empty event"),
                Some(Change::Put(object)) => {
                    let key = key(&object.kind, &object.name);
                    let number =
                        object.annotations.get(WRITE).and_then(|number| number.parse().ok()).unwrap_or_default();
                    self.note(format!("put {key} as {number} at {}", object.revision));
                    if quiet {
                        self.violate("Quiet", &format!("{key} was sent although nothing has changed"));
                    }
                    let seen = Seen {
                        number,
                        epoch: self.holding.epoch(),
                        revision: object.revision,
                        manager: object.manager.clone(),
                        digest: event.digest.to_vec(),
                        refs: object.refs.clone(),
                    };
                    self.check_put(&key, &seen, &object);
                    if !snapshot {
                        self.check_place(&key);
                    }
                    (key, Some(seen))
                }
                Some(Change::Delete(removal)) => {
                    let key = key(&removal.kind, &removal.name);
                    self.note(format!("delete {key} at {}, out of scope: {}", removal.revision, removal.out_of_scope));
                    if quiet {
                        self.violate("Quiet", &format!("the end of {key} was sent although nothing has changed"));
                    }
                    if let Some(held) = self.holding.held.get(&key).map(|seen| seen.number) {
                        self.check_removal(&key, held, "deleted");
                    }
                    (key, None)
                }
            };
            if snapshot {
                self.holding.perform(change);
            } else {
                if self.holding.staged.iter().any(|(key, _)| *key == change.0) {
                    self.violate("Unique", &format!("{} is in a group twice", change.0));
                }
                self.check_order(&change.0, change.1.as_ref());
                self.holding.staged.push(change);
            }
        }
        if batch.revision != 0 {
            if snapshot {
                self.violate("Atomic", "a position in the middle of a snapshot");
            }
            self.holding.settle();
            self.reach_exactly(batch.revision);
        }
    }

    /// Within a group, puts come first, and each after what it needs; so nobody has to look ahead.
    fn check_place(&self, key: &Key) {
        let staged = &self.holding.staged;
        if let Some((other, _)) = staged.iter().find(|(_, seen)| seen.is_none()) {
            self.violate("RefOrder", &format!("a put of {key} comes after a delete, of {other}, in the same group"));
        }
        let needed = |refs: &[v1::Reference]| refs.iter().any(|needed| self::key(&needed.kind, &needed.name) == *key);
        if let Some((other, _)) = staged.iter().find(|(_, seen)| seen.as_ref().is_some_and(|seen| needed(&seen.refs))) {
            self.violate("RefOrder", &format!("{other} is sent before {key}, which it needs"));
        }
    }

    /// Within a stream, what comes is new.
    fn check_order(&self, key: &Key, seen: Option<&Seen>) {
        let (Some(held), Some(seen)) = (self.holding.held.get(key), seen) else { return };
        if seen.epoch == held.epoch && seen.revision <= held.revision {
            let (new, old) = (seen.revision, held.revision);
            self.violate("Unique", &format!("{key} comes at revision {new} although {old} is held"));
        }
    }

    fn check_put(&self, key: &Key, seen: &Seen, object: &v1::Object) {
        let world = self.world.lock();
        let found = world
            .model
            .objects
            .get(key)
            .and_then(|writes| Some(&writes.list[writes.find(seen.number)?]));
        let complaint = match found.and_then(|write| write.version.as_ref()) {
            None => Some(("Reliable", format!("{key} was never written as {}", seen.number))),
            Some(version) if !self.setup.viewer.sees(key, version) => {
                Some(("Filtered", format!("{key} as {} is for others", seen.number)))
            }
            Some(version) => {
                let wire = version.wire(key, seen.number);
                let same = (&wire.uid, wire.generation, &wire.spec, &wire.refs, &wire.labels)
                    == (&object.uid, object.generation, &object.spec, &object.refs, &object.labels);
                (!same).then(|| ("Reliable", format!("{key} as {} is not what was written", seen.number)))
            }
        };
        drop(world);
        if let Some((property, what)) = complaint {
            self.violate(property, &what);
        }
        if let Some(newest) = self.holding.newest.get(key).filter(|newest| **newest > seen.number) {
            self.violate("Ordered", &format!("{key} goes back from {newest} to {}", seen.number));
        }
    }

    /// Nothing goes that was not deleted, and is not for others.
    fn check_removal(&self, key: &Key, number: u64, how: &str) {
        let gone = {
            let world = self.world.lock();
            let writes = &world.model.objects[key];
            let shows = |write: &crate::model::Write| {
                write.version.as_ref().is_some_and(|version| self.setup.viewer.sees(key, version))
            };
            writes
                .find(number)
                .is_some_and(|index| writes.list[index..].iter().any(|write| !shows(write)))
        };
        if !gone {
            self.violate("NoFalseDelete", &format!("{key} as {number} was {how}, and never deleted"));
        }
    }

    fn reach(&mut self, revision: u64, digest: &[u8], objects: u64) {
        self.reach_exactly(revision);
        let (root, count) = (self.holding.root(), self.holding.held.len() as u64);
        if root != digest || count != objects {
            self.violate(
                "Converges",
                &format!("at {revision} the bus has {objects} objects, here are {count}, or the digests differ"),
            );
        }
    }

    /// At a position, everything must be exactly as it was then.
    fn reach_exactly(&mut self, revision: u64) {
        let Some(position) = self.holding.reach(revision) else {
            return self.violate("Ordered", &format!("the position falls to {revision}"));
        };
        let complaint = {
            let world = self.world.lock();
            let judge = |key: &Key| {
                let seen = self.holding.held.get(key).map(|seen| seen.number);
                world.model.judge(&self.setup.viewer, key, seen, position.epoch, revision).err()
            };
            world.model.objects.keys().find_map(judge)
        };
        if let Some(what) = complaint {
            return self.violate("Bookmarkable", &format!("at {revision}, {what}"));
        }
        for publisher in crate::setup::PUBLISHERS {
            let members = crate::hosts::publisher::group(publisher);
            let numbers: Vec<_> =
                members.iter().map(|key| self.holding.held.get(key).map(|seen| seen.number)).collect();
            // They were written one after the other, in one transaction.
            let tear = |pair: &[Option<u64>]| pair[0].map(|number| number + 1) != pair[1];
            if numbers.windows(2).any(tear) {
                self.violate(
                    "Atomic",
                    &format!("at {revision}, of the objects that {publisher} writes together there are {numbers:?}"),
                );
            }
        }
    }
}
