//! What follows from a policy.

use std::sync::Arc;

use ctkit::{Action, AgentReport, Context, Failure, Object, Permanent as _, Reactor};

use crate::{
    kinds::{NetworkPolicy, NetworkPolicyStatus, ZoneRules},
    rules::compile,
};

/// Compiles policies to rules for each of their zones.
pub(crate) struct Policies;

impl Reactor<NetworkPolicy> for Policies {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<NetworkPolicy>>) -> Result<Action, Failure> {
        let statements = compile(&policy.spec.rules).permanent()?; // only an edit can cure it
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
