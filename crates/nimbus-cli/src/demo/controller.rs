//! The controller of the demo: a whole one. Network policies become rules for the agents of their zones.

use std::{sync::Arc, time::Duration};

use ctkit::{Action, AgentReport, Context, Controller, Failure, Manager, Object, Reactor, Remote};

use crate::demo::{
    kinds::{DESCRIPTORS, NetworkPolicy, NetworkPolicyStatus, ZoneRules},
    rules::compile,
};

/// Compiles policies to rules for each of their zones.
struct Policies;

impl Reactor<NetworkPolicy> for Policies {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<NetworkPolicy>>) -> Result<Action, Failure> {
        let statements = compile(&policy.spec.rules)?; // a rule that is none is a failure until somebody edits it
        for zone in &policy.spec.zones {
            let rules = ZoneRules { zone: zone.clone(), statements: statements.clone() };
            cx.publish(Object::derived(&policy, zone, rules).for_label("zone", zone)).await?;
        }
        Ok(Action::done()) // zones that are not published any more are withdrawn
    }

    async fn on_agent_status(&self, cx: &Context, report: AgentReport<NetworkPolicy>) -> Result<Action, Failure> {
        let of = report.propagation;
        let failures = of.failures.iter().map(|failure| format!("{}: {}", failure.agent, failure.message));
        let (agents, applied, failed) = (of.agents, of.applied, of.failed);
        let new = NetworkPolicyStatus { agents, applied, failed, failures: failures.collect() };
        cx.update_status(move |status| *status = new);
        Ok(Action::done())
    }
}

/// The demo is to end within two seconds, whatever runs.
const GRACE: Duration = Duration::from_millis(500);

/// The controller, at that bus.
pub(crate) async fn controller(bus: &str) -> Result<Manager, Failure> {
    let daemon = Remote::connect(bus)?;
    daemon.register_kinds(DESCRIPTORS).await?;
    let policies = Controller::new(Policies).publishes::<ZoneRules>();
    Ok(Manager::builder(daemon).controller(policies).grace(GRACE).build()?)
}
