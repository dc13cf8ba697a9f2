//! Agents that answer as they are told.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use nimbus_agent::{Context, Failure, Handler, Object, Spec, Status};
use nimbus_core::{Kind, ObjectKey};
use prost_types::Any;
use tokio::sync::watch;

use crate::{
    agent::{Agent, AgentSetup},
    world::World,
};

/// A scripted agent that is about to be started; see [`World::scripted`].
#[derive(Debug)]
#[must_use]
pub struct ScriptedSetup<'a> {
    agent: AgentSetup<'a>,
    script: Script,
}

/// An agent that answers as it is told; until it is told otherwise, it applies everything. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Scripted {
    agent: Agent,
    script: Script,
}

/// What an agent answers, and what it holds. Clones are the same one.
#[derive(Clone, Default)]
struct Script(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    otherwise: Answer,
    answers: HashMap<(Kind, String), Answer>,
    held: BTreeMap<ObjectKey, Any>,
}

#[derive(Debug, Clone, Default)]
enum Answer {
    #[default]
    Applies,
    Degrades(&'static str, String),
    Fails(Failure),
    Stalls,
}

// === impl ScriptedSetup ===

impl<'a> ScriptedSetup<'a> {
    pub(crate) fn new(world: &'a World, id: &str) -> Self {
        Self { agent: AgentSetup::new(world, id).not_waited_for(), script: Script::default() }
    }

    /// A label, which the audiences of objects look at.
    pub fn label(self, key: &str, value: &str) -> Self {
        Self { agent: self.agent.label(key, value), ..self }
    }

    /// Takes objects of kind `K`. At least one kind is needed.
    pub fn takes<K: Spec>(self) -> Self {
        let agent = self.agent.handle::<K, _>(self.script.clone());
        Self { agent, ..self }
    }

    /// Starts it.
    ///
    /// # Panics
    /// If it takes nothing, or its name or a label is not one.
    pub fn start(self) -> Scripted {
        Scripted { agent: self.agent.start(), script: self.script }
    }
}

// === impl Scripted ===

impl Scripted {
    /// From now on it applies whatever comes, also what has stalled.
    pub fn applies_everything(&self) {
        self.script.answer(Answer::Applies);
    }

    /// From now on it fails with whatever comes.
    pub fn fails_everything(&self, failure: Failure) {
        self.script.answer(Answer::Fails(failure));
    }

    /// From now on it fails with the object of that name: again and again, or once if the failure is permanent.
    pub fn fails<K: Spec>(&self, name: &str, failure: Failure) {
        self.script.answer_to::<K>(name, Answer::Fails(failure));
    }

    /// From now on it applies the object of that name, but not as well as it should be.
    pub fn degrades<K: Spec>(&self, name: &str, code: &'static str, message: &str) {
        self.script.answer_to::<K>(name, Answer::Degrades(code, message.to_owned()));
    }

    /// From now on it takes what comes, and never says what became of it, until it is told to go on.
    pub fn stalls(&self) {
        self.script.answer(Answer::Stalls);
    }

    /// What it has applied, by name.
    ///
    /// # Panics
    /// If something else than what `K` says was applied, which the runtime does not let through.
    pub fn holds<K: Spec>(&self) -> BTreeMap<String, K> {
        let state = self.script.0.borrow();
        let held = state.held.iter().filter(|(key, _)| *key.kind() == K::kind());
        held.map(|(key, any)| (key.name().to_owned(), K::decode(&*any.value).expect("it was packed here")))
            .collect()
    }

    /// The agent itself: its link, how it is doing, how it ends.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}

// === impl Script ===

impl Script {
    fn answer(&self, answer: Answer) {
        self.0.send_modify(|state| {
            state.otherwise = answer;
            state.answers.clear();
        });
    }

    fn answer_to<K: Spec>(&self, name: &str, answer: Answer) {
        self.0.send_modify(|state| {
            state.answers.insert((K::kind(), name.to_owned()), answer);
        });
    }

    /// What it says of an object, when it says something.
    async fn say(&self, key: &ObjectKey) -> Answer {
        let mut state = self.0.subscribe();
        let name = (key.kind().clone(), key.name().to_owned());
        let answer = |state: &State| state.answers.get(&name).unwrap_or(&state.otherwise).clone();
        let said = state.wait_for(|state| !matches!(answer(state), Answer::Stalls)).await;
        answer(&said.expect("the script itself holds the sender"))
    }
}

impl<K: Spec> Handler<K> for Script {
    async fn apply(&self, _: &Context, object: Arc<Object<K>>) -> Result<Status, Failure> {
        let answer = self.say(object.key()).await;
        if let Answer::Fails(failure) = answer {
            return Err(failure);
        }
        self.0.send_modify(|state| {
            state.held.insert(object.key().clone(), object.spec.pack());
        });
        match answer {
            Answer::Degrades(code, message) => Ok(Status::degraded(code, message)),
            _ => Ok(Status::applied()),
        }
    }

    async fn remove(&self, _: &Context, object: Arc<Object<K>>) -> Result<(), Failure> {
        if let Answer::Fails(failure) = self.say(object.key()).await {
            return Err(failure);
        }
        self.0.send_modify(|state| {
            state.held.remove(object.key());
        });
        Ok(())
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}
