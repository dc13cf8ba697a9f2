//! The agent of the demo: a whole one. It keeps the rules of its zone in a table, which may be too small.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nimbus_agent::{Agent, Backoff, BuildError, Connector, Context, Failure, Handler, Object, ObjectKey, Status};
use parking_lot::Mutex;

use crate::demo::kinds::ZoneRules;

/// The rules that are in force on a machine: the statements of each policy.
#[derive(Debug)]
pub(crate) struct Table {
    /// A policy with more statements does not fit.
    room: usize,
    in_force: Mutex<BTreeMap<ObjectKey, Vec<String>>>,
}

impl Handler<ZoneRules> for Table {
    async fn apply(&self, _: &Context, rules: Arc<Object<ZoneRules>>) -> Result<Status, Failure> {
        let statements = &rules.spec.statements;
        if statements.len() > self.room {
            let message = format!("{} statements, but there is room for {} only", statements.len(), self.room);
            return Err(Failure::new(message).with_code("TABLE_FULL").permanent()); // trying again is of no use
        }
        self.in_force.lock().insert(rules.key().clone(), statements.clone());
        Ok(Status::applied()) // this is the acknowledgement
    }

    async fn remove(&self, _: &Context, rules: Arc<Object<ZoneRules>>) -> Result<(), Failure> {
        self.in_force.lock().remove(rules.key());
        Ok(())
    }
}

impl Table {
    /// An empty table.
    pub(crate) fn with_room_for(room: usize) -> Arc<Self> {
        Arc::new(Self { room, in_force: Mutex::default() })
    }

    /// Everything that is in force.
    pub(crate) fn in_force(&self) -> BTreeMap<ObjectKey, Vec<String>> {
        self.in_force.lock().clone()
    }

    /// What is in force of one object.
    pub(crate) fn statements(&self, name: &str) -> Vec<String> {
        let in_force = self.in_force.lock();
        let found = in_force.iter().find(|(key, _)| key.name() == name);
        found.map(|(_, statements)| statements.clone()).unwrap_or_default()
    }
}

/// Nobody who watches likes to wait: at most a second between two attempts.
const RECONNECT: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1) };

/// An agent of that name in that zone.
pub(crate) fn agent(
    id: &str,
    zone: &str,
    bus: &str,
    table: &Arc<Table>,
    connector: impl Connector,
) -> Result<Agent, BuildError> {
    Agent::builder(id, bus)
        .label("zone", zone)
        .handle(table.clone())
        .connector(connector)
        .reconnect(RECONNECT)
        .software(concat!("nimbus-demo/", env!("CARGO_PKG_VERSION")))
        .build()
}
