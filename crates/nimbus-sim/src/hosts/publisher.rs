//! A publisher: syncs, then writes whatever comes to its mind, and syncs again when it does not know how a write ended.

mod write;

use std::time::Duration;

use nimbus_client::Channel;
use nimbus_wire::v1::{self, publisher_client::PublisherClient, sync_request::Step};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::{
    hosts::{PATIENCE, connect, endpoint, keep_jumping},
    model::{KINDS, Key},
    net::Line,
    world::{Phase, World, millis},
};

/// One life of a publisher, connected.
struct Session<'a> {
    world: &'a World,
    name: &'a str,
    client: PublisherClient<Channel>,
    rng: &'a mut SmallRng,
    fence: u64,
    epoch: u64,
}

/// Why a session is over, for people.
type Over = String;

/// A sync has many items, and may be slow with each of them.
const SYNC_PATIENCE: Duration = Duration::from_secs(20);

/// Runs until it is killed.
pub(crate) async fn run(world: World, name: &'static str, line: Line) -> turmoil::Result {
    let mut rng = world.rng(name);
    tokio::spawn(keep_jumping(world.clone(), name.to_owned()));
    loop {
        let why = match connect(&line).await {
            Ok(channel) => live(&world, name, channel, &mut rng).await,
            Err(why) => why,
        };
        world.note(name, format!("begins again: {why}"));
        world.lock().done.remove(name);
        sleep(millis(&mut rng, 20, 400)).await;
    }
}

async fn live(world: &World, name: &str, channel: Channel, rng: &mut SmallRng) -> Over {
    let fence = {
        let mut world = world.lock();
        let fence = world.fences.entry(name.to_owned()).or_default();
        *fence += 1;
        *fence
    };
    let client = PublisherClient::with_origin(channel, endpoint().uri().clone());
    let mut session = Session { world, name, client, rng, fence, epoch: 0 };
    match session.sync().await {
        Ok(()) => session.publish().await,
        Err(why) => why,
    }
}

/// All that a publisher ever writes: objects of each kind, and a few that are only written together.
pub(crate) fn keys(name: &str, names: usize) -> Vec<Key> {
    let of = |kind: &'static str| (0..names).map(move |number| Key::new(kind, &format!("{name}-{number}")));
    KINDS.into_iter().flat_map(of).collect()
}

/// Those that are only written together.
pub(crate) fn group(name: &str) -> Vec<Key> {
    (0..3)
        .map(|number| Key::new(KINDS[number % 2], &format!("{name}-group-{number}")))
        .collect()
}

/// Whether nobody can say how a call ended.
fn is_doubtful(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal | Code::Aborted
    )
}

// === impl Session ===

impl Session<'_> {
    /// Says everything that should exist. It may die, or give up, in the middle.
    async fn sync(&mut self) -> Result<(), Over> {
        let all: Vec<Key> = {
            let mut world = self.world.lock();
            let mut all = keys(self.name, world.setup.names);
            all.extend(group(self.name));
            all.iter().for_each(|key| world.model.doubt(key));
            world.note(self.name, format!("syncs with fence {}", self.fence));
            all
        };
        let begin = v1::SyncBegin {
            publisher: self.name.to_owned(),
            fence: self.fence,
            kinds: KINDS.iter().map(|&kind| kind.to_owned()).collect(),
            leases: Vec::new(),
        };
        let mut steps = vec![Step::Begin(begin)];
        let together = group(self.name);
        steps.extend(
            all.iter()
                .filter(|key| !together.contains(key))
                .filter_map(|key| self.items(std::slice::from_ref(key))),
        );
        steps.extend(self.items(&together));
        let slow = crate::setup::pick(self.rng, &[0, 0, 20, 150]);
        let chaos = self.world.phase() == Phase::Chaos;
        let given_up = (chaos && self.rng.random_bool(0.1)).then(|| self.rng.random_range(0..steps.len()));
        match given_up {
            Some(after) => steps.truncate(after + 1),
            None => steps.push(Step::End(v1::SyncEnd {})),
        }
        let (sender, requests) = mpsc::channel(1);
        let feed = async {
            for step in steps {
                if slow > 0 {
                    sleep(millis(self.rng, 0, slow)).await;
                }
                if sender.send(v1::SyncRequest { step: Some(step) }).await.is_err() {
                    break;
                }
            }
            drop(sender);
        };
        let call = timeout(SYNC_PATIENCE, self.client.sync(ReceiverStream::new(requests)));
        let (answer, ()) = tokio::join!(call, feed);
        let answer = answer
            .map_err(|_| "no answer to a sync".to_owned())?
            .map_err(|status| self.failed("a sync", &status));
        let answer = match (answer, given_up) {
            (Ok(answer), None) => answer.into_inner(),
            (Ok(_), Some(_)) => {
                self.world
                    .violate(self.name, "NoFalseDelete", "a sync without an end was taken for a whole one");
                return Err("nonsense".to_owned());
            }
            (Err(why), _) => return Err(why),
        };
        self.epoch = answer.epoch;
        let mut world = self.world.lock();
        for key in &all {
            world.model.acknowledge(key, answer.epoch, 0, answer.revision);
        }
        let v1::SyncResponse { revision, created, updated, unchanged, deleted, .. } = answer;
        let what = format!(
            "synced at {revision}: {created} created, {updated} updated, {unchanged} unchanged, {deleted} deleted"
        );
        world.note(self.name, what);
        if world.phase == Phase::Quiet && world.setup.durable && created + updated + deleted > 0 {
            world.violate(self.name, "Quiet", "a sync of what is there changed something");
        }
        Ok(())
    }

    fn items(&self, keys: &[Key]) -> Option<Step> {
        let world = self.world.lock();
        let object = |key: &Key| {
            let (version, number) = world.model.objects.get(key)?.now()?;
            Some(version.wire(key, number))
        };
        let objects: Vec<_> = keys.iter().filter_map(object).collect();
        (!objects.is_empty()).then_some(Step::Items(v1::SyncItems { objects }))
    }

    /// Writes until it does not know how a write ended.
    async fn publish(&mut self) -> Over {
        let pause = self.world.lock().setup.pause;
        loop {
            sleep(millis(self.rng, pause / 10, pause * 2)).await;
            let written = match self.world.phase() {
                Phase::Chaos => self.write().await,
                Phase::Settling => self.tidy().await,
                Phase::Steady | Phase::Quiet => self.sign_of_life().await,
            };
            if let Err(why) = written {
                return why;
            }
        }
    }

    async fn apply(&mut self, fence: u64, ops: Vec<v1::Op>) -> Result<Result<v1::ApplyResponse, Status>, Over> {
        let request = v1::ApplyRequest { publisher: self.name.to_owned(), fence, ops, ..Default::default() };
        let answer = timeout(PATIENCE, self.client.apply(request)).await;
        let answer = answer.map_err(|_| "no answer to a write".to_owned())?;
        Ok(answer.map(tonic::Response::into_inner))
    }

    /// Why a call failed; a refusal without a reason is more than that.
    fn failed(&self, what: &str, status: &Status) -> Over {
        if !is_doubtful(status) {
            self.world.violate(self.name, "Reliable", &format!("{what} was refused: {status}"));
        }
        status.message().to_owned()
    }
}
