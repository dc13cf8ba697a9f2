//! What a publisher writes, and what it must be told.

use nimbus_wire::v1::{self, Result as Outcome, op};
use rand::RngExt as _;
use tonic::Code;

use crate::{
    hosts::publisher::{Over, Session, group, keys},
    model::{Audience, KINDS, Key, Version, ZONES},
    setup::pick,
};

/// A write that is about to be made.
struct Intent {
    key: Key,
    op: v1::Op,
    expected: Outcome,
}

// === impl Session ===

impl Session<'_> {
    /// Makes one write of any sort.
    pub(super) async fn write(&mut self) -> Result<(), Over> {
        let names = self.world.lock().setup.names;
        let all = keys(self.name, names);
        match self.rng.random_range(0..100) {
            0..40 => {
                let key = pick(self.rng, &all);
                let intent = self.put(&key, None);
                self.commit(vec![intent]).await
            }
            40..55 => {
                let key = pick(self.rng, &all);
                let intents = self.delete(&key).into_iter().collect();
                self.commit(intents).await
            }
            55..70 => {
                let together = group(self.name);
                let exists = self.world.lock().model.objects.get(&together[0]).is_some_and(|it| it.now().is_some());
                let intents = if exists && self.rng.random_bool(0.3) {
                    together.iter().filter_map(|key| self.delete(key)).collect()
                } else {
                    let (audience, tier) = (self.audience(), pick(self.rng, &["gold", "plain"]));
                    together.iter().map(|key| self.put(key, Some((audience.clone(), tier)))).collect()
                };
                self.commit(intents).await
            }
            70..80 => {
                let mut intents: Vec<Intent> = Vec::new();
                for _ in 0..self.rng.random_range(2..5) {
                    let key = pick(self.rng, &all);
                    if intents.iter().any(|intent| intent.key == key) {
                        continue;
                    }
                    let deletes = self.rng.random_bool(0.3);
                    intents.extend(if deletes { self.delete(&key) } else { Some(self.put(&key, None)) });
                }
                self.commit(intents).await
            }
            80..88 => self.repeat(&all).await,
            88..93 => self.haunt(&all).await,
            _ => self.sign_of_life().await,
        }
    }

    /// Takes away references that nobody could ever satisfy, so that everything can be applied in the end.
    pub(super) async fn tidy(&mut self) -> Result<(), Over> {
        let intents: Vec<Intent> = {
            let names = self.world.lock().setup.names;
            let mut intents = Vec::new();
            for key in keys(self.name, names) {
                let mut world = self.world.lock();
                let Some((version, _)) = world.model.objects.get(&key).and_then(|writes| writes.now()) else {
                    continue;
                };
                let mut version = version.clone();
                let can = |needed: &Key| {
                    let there = world.model.objects.get(needed).and_then(|writes| writes.now());
                    there.is_some_and(|(there, _)| {
                        there.audience == Audience::Everyone || there.audience == version.audience
                    })
                };
                let refs: Vec<Key> = version.refs.iter().filter(|needed| can(needed)).cloned().collect();
                if refs.len() == version.refs.len() {
                    continue;
                }
                version.refs = refs;
                let number = world.model.begin(&key, Some(version.clone()));
                world.note(self.name, format!("tidies {key} as {number}"));
                intents.push(Intent { op: upsert(&version, &key, number), key, expected: Outcome::Updated });
            }
            intents
        };
        if intents.is_empty() {
            self.sign_of_life().await?;
            self.world.lock().done.insert(self.name.to_owned());
            return Ok(());
        }
        self.commit(intents).await
    }

    pub(super) async fn sign_of_life(&mut self) -> Result<(), Over> {
        let answer = self
            .apply(self.fence, Vec::new())
            .await?
            .map_err(|status| self.failed("a sign of life", &status))?;
        if answer.epoch == self.epoch { Ok(()) } else { Err("the bus has another epoch".to_owned()) }
    }

    fn audience(&mut self) -> Audience {
        match self.rng.random_range(0..4) {
            0..2 => Audience::Everyone,
            2 => Audience::Zone(pick(self.rng, &ZONES)),
            _ => {
                let all = ["agent-1", "agent-2", "agent-3", "raw"];
                Audience::Agents(all.iter().filter(|_| self.rng.random_bool(0.4)).map(|&id| id.to_owned()).collect())
            }
        }
    }

    fn put(&mut self, key: &Key, same: Option<(Audience, &'static str)>) -> Intent {
        let (audience, tier) = same.clone().unwrap_or_else(|| (self.audience(), pick(self.rng, &["gold", "plain"])));
        let rank = KINDS.iter().position(|&kind| kind == key.kind).unwrap_or_default();
        let mut world = self.world.lock();
        let names = world.setup.names;
        let mut refs = Vec::new();
        if same.is_none() && rank > 0 {
            for _ in 0..self.rng.random_range(0..3) {
                let kind = pick(self.rng, &KINDS[..rank]);
                let writer = pick(self.rng, &crate::setup::PUBLISHERS);
                let needed = Key::new(kind, &format!("{writer}-{}", self.rng.random_range(0..names)));
                if !refs.contains(&needed) {
                    refs.push(needed);
                }
            }
            // As the bus tells them.
            refs.sort();
        }
        let before = world
            .model
            .objects
            .get(key)
            .and_then(|writes| writes.now())
            .map(|(version, _)| version.clone());
        let changes_spec = self.rng.random_bool(0.6);
        let (version, expected) = match before {
            None => {
                let uid = world.model.next_uid(key);
                let content = self.rng.random();
                (Version { uid, generation: 1, content, tier, refs, audience }, Outcome::Created)
            }
            Some(before) if changes_spec => {
                let content = self.rng.random();
                let generation = before.generation + 1;
                (Version { generation, content, tier, refs, audience, ..before }, Outcome::Updated)
            }
            // Some of what is around it, and perhaps nothing but the number of the write.
            Some(before) => match self.rng.random_range(0..3) {
                0 => (Version { audience, ..before }, Outcome::Updated),
                1 => (Version { refs, ..before }, Outcome::Updated),
                _ => (Version { tier, audience, ..before }, Outcome::Updated),
            },
        };
        let version = match same {
            Some((audience, tier)) => Version { audience, tier, ..version },
            None => version,
        };
        let number = world.model.begin(key, Some(version.clone()));
        let refs = version.refs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let what = format!("puts {key} as {number} for {:?} ({}) needing [{refs}]", version.audience, version.tier);
        world.note(self.name, what);
        Intent { op: upsert(&version, key, number), key: key.clone(), expected }
    }

    fn delete(&mut self, key: &Key) -> Option<Intent> {
        let mut world = self.world.lock();
        let uid = world.model.objects.get(key)?.now()?.0.uid.clone();
        let number = world.model.begin(key, None);
        world.note(self.name, format!("deletes {key} as {number}"));
        let precondition = Some(v1::Precondition { uid, ..Default::default() });
        let op = v1::Op { op: Some(op::Op::Delete(key.wire())), precondition, take_over: false };
        Some(Intent { key: key.clone(), op, expected: Outcome::Deleted })
    }

    /// Makes writes, all or none.
    async fn commit(&mut self, intents: Vec<Intent>) -> Result<(), Over> {
        if intents.is_empty() {
            return Ok(());
        }
        let ops = intents.iter().map(|intent| intent.op.clone()).collect();
        let answer = self.apply(self.fence, ops).await?.map_err(|status| self.failed("a write", &status))?;
        let mut world = self.world.lock();
        world.writes += intents.len() as u64;
        world.note(self.name, format!("written at {}", answer.revision));
        for (intent, outcome) in intents.iter().zip(&answer.outcomes) {
            world
                .model
                .acknowledge(&intent.key, answer.epoch, answer.revision.saturating_sub(1), answer.revision);
            if answer.epoch == self.epoch && outcome.result() != intent.expected {
                let what = format!("{} is {:?}, expected {:?}", intent.key, outcome.result(), intent.expected);
                world.violate(self.name, "Reliable", &what);
            }
        }
        if answer.epoch == self.epoch { Ok(()) } else { Err("the bus has another epoch".to_owned()) }
    }

    /// Publishes what is already there.
    async fn repeat(&mut self, all: &[Key]) -> Result<(), Over> {
        let key = pick(self.rng, all);
        let object = {
            let world = self.world.lock();
            let now = world.model.objects.get(&key).and_then(|writes| writes.now());
            now.map(|(version, number)| upsert(version, &key, number))
        };
        let Some(op) = object else { return Ok(()) };
        self.world.note(self.name, format!("repeats {key}"));
        let answer = self
            .apply(self.fence, vec![op])
            .await?
            .map_err(|status| self.failed("a repetition", &status))?;
        if answer.epoch != self.epoch {
            return Err("the bus has another epoch".to_owned());
        }
        if answer.outcomes.first().is_none_or(|outcome| outcome.result() != Outcome::Unchanged) {
            self.world.violate(
                self.name,
                "Quiet",
                &format!("{key} was written again as it is, and that changed something"),
            );
        }
        Ok(())
    }

    /// Writes as an instance that should be dead.
    async fn haunt(&mut self, all: &[Key]) -> Result<(), Over> {
        let key = pick(self.rng, all);
        self.world.note(self.name, format!("haunts {key}"));
        let version = Version {
            uid: "ghost".into(),
            generation: 1_000_000,
            content: 0,
            tier: "plain",
            refs: Vec::new(),
            audience: Audience::Everyone,
        };
        match self.apply(self.fence - 1, vec![upsert(&version, &key, 0)]).await? {
            Err(status) if status.code() == Code::FailedPrecondition => Ok(()),
            Err(status) => Err(self.failed("a ghost", &status)),
            Ok(answer) if answer.epoch != self.epoch => Err("the bus has another epoch".to_owned()),
            Ok(_) => {
                self.world.violate(self.name, "Fenced", &format!("an older instance has written {key}"));
                Err("a ghost was believed".to_owned())
            }
        }
    }
}

fn upsert(version: &Version, key: &Key, number: u64) -> v1::Op {
    v1::Op { op: Some(op::Op::Upsert(version.wire(key, number))), precondition: None, take_over: false }
}
