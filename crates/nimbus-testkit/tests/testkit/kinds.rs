//! A controller to be tested: rules for zones, and how far they have come.

use std::{collections::BTreeMap, sync::Arc};

use ctkit::{Action, AgentReport, Context, Controller, Draft, Failure, Object, Permanent as _, Reactor};
use nimbus_agent::{Handler, Status};
use nimbus_testkit::World;
use parking_lot::Mutex;

/// What users write.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Policy {
    #[prost(string, repeated, tag = "1")]
    pub(crate) zones: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) port: String,
}

impl prost::Name for Policy {
    const NAME: &'static str = "Policy";
    const PACKAGE: &'static str = "kit.v1";
}

/// What agents get.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Rules {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    #[prost(uint32, tag = "2")]
    pub(crate) port: u32,
}

impl prost::Name for Rules {
    const NAME: &'static str = "Rules";
    const PACKAGE: &'static str = "kit.v1";
}

/// What a policy says of itself.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PolicyStatus {
    #[prost(uint32, tag = "1")]
    pub(crate) applied: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) agents: u32,
}

impl prost::Name for PolicyStatus {
    const NAME: &'static str = "PolicyStatus";
    const PACKAGE: &'static str = "kit.v1";
}

/// The reactor.
pub(crate) struct Policies;

impl Reactor<Policy> for Policies {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let port: u16 = policy.spec.port.parse().permanent()?;
        for zone in &policy.spec.zones {
            let rules = Rules { zone: zone.clone(), port: port.into() };
            cx.publish(Object::derived(&policy, zone, rules).for_label("zone", zone)).await?;
        }
        Ok(Action::done())
    }

    async fn on_agent_status(&self, cx: &Context, report: AgentReport<Policy>) -> Result<Action, Failure> {
        let (applied, agents) = (report.propagation.applied, report.propagation.agents);
        cx.update_status(move |status: &mut PolicyStatus| (status.applied, status.agents) = (applied, agents));
        Ok(Action::done())
    }
}

/// A handler that remembers what it was told.
#[derive(Default)]
pub(crate) struct Switch {
    pub(crate) ports: Mutex<BTreeMap<String, u32>>,
    pub(crate) calls: Mutex<u32>,
}

impl Handler<Rules> for Switch {
    async fn apply(&self, _: &nimbus_agent::Context, rules: Arc<Object<Rules>>) -> Result<Status, Failure> {
        *self.calls.lock() += 1;
        self.ports.lock().insert(rules.name().to_owned(), rules.spec.port);
        Ok(Status::applied())
    }

    async fn remove(&self, _: &nimbus_agent::Context, rules: Arc<Object<Rules>>) -> Result<(), Failure> {
        *self.calls.lock() += 1;
        self.ports.lock().remove(rules.name());
        Ok(())
    }
}

impl Switch {
    pub(crate) fn ports(&self) -> Vec<u32> {
        self.ports.lock().values().copied().collect()
    }

    pub(crate) fn calls(&self) -> u32 {
        *self.calls.lock()
    }
}

/// A world with the controller in it.
pub(crate) fn world() -> World {
    let mut world = World::new();
    world.controller(controller);
    world
}

pub(crate) fn controller() -> Controller {
    Controller::new(Policies).publishes::<Rules>()
}

pub(crate) fn policy(zones: &[&str], port: &str) -> Draft<Policy> {
    let zones = zones.iter().map(ToString::to_string).collect();
    Draft::new("web", Policy { zones, port: port.to_owned() })
}

/// Zones and ports on the bus.
pub(crate) fn published(world: &World) -> Vec<(String, u32)> {
    world
        .published::<Rules>()
        .into_iter()
        .map(|rules| (rules.spec.zone, rules.spec.port))
        .collect()
}

pub(crate) fn pairs<const N: usize>(expected: [(&str, u32); N]) -> Vec<(String, u32)> {
    expected.map(|(zone, port)| (zone.to_owned(), port)).into()
}
