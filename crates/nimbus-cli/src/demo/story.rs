//! The story, step by step. Nothing is said that was not seen at the bus, or at the agents.

mod applied;
mod beginning;
mod bus_restart;
mod controller_restart;
mod cut_off;
mod everywhere;
mod rejected;
mod tables;

use nimbus_wire::v1;

use crate::demo::{
    cast::Cast,
    figures,
    fleet::ZONES,
    operator::Policy,
    stage::{Stage, Untrue},
};

/// The policy that the story is about.
pub(crate) const WEB: &str = "web";

/// Policies that are there from the beginning, so that there is something to be sent.
pub(crate) const EVERYDAY: u32 = 40;

/// The name of an everyday policy.
pub(crate) fn everyday_name(number: u32) -> String {
    format!("app-{number:02}")
}

/// An everyday policy; each edition is another one.
pub(crate) fn everyday(number: u32, edition: u32) -> Policy {
    let port = 8_000 + number;
    let (open, closed) = (format!("allow tcp {port} from 10.{number}.0.0/16"), format!("deny udp {}", 5_000 + edition));
    Policy::new(&everyday_name(number), &ZONES, &[&open, &closed])
}

/// Everybody comes, and then the story is told.
pub(crate) async fn tell(stage: &mut Stage, cast: &mut Cast, agents: u32) -> Result<(), Untrue> {
    beginning::tell(stage, cast, agents).await?;
    let revision = applied::tell(stage, cast).await?;
    everywhere::tell(stage, cast, revision).await?;
    rejected::tell(stage, cast).await?;
    cut_off::tell(stage, cast).await?;
    controller_restart::tell(stage, cast).await?;
    bus_restart::tell(stage, cast).await
}

/// Writes a policy, and waits until its reactor has published what follows from it. Gives those objects.
pub(crate) async fn publish(stage: &mut Stage, cast: &Cast, policy: &Policy) -> Result<Vec<v1::Object>, Untrue> {
    let written = cast.operator.change(std::slice::from_ref(policy), &[]).await;
    stage.must(&format!("the bus takes {}", policy.name), written)?;
    let expected = format!("the reactor has compiled {}", policy.name);
    stage
        .expect(&expected, async || {
            cast.operator.reconciled(&policy.name).await?;
            cast.operator.rules_of(&policy.name).await
        })
        .await
}

/// The transaction in which they were last published.
pub(crate) fn revision_of(rules: &[v1::Object]) -> u64 {
    rules.iter().map(|rules| rules.revision).max().unwrap_or_default()
}

/// Of the rules of the story's policy, those of a zone.
pub(crate) fn of_zone<'a>(rules: &'a [v1::Object], zone: &str) -> Option<&'a str> {
    let begin = format!("{WEB}-{zone}-");
    rules.iter().map(|rules| rules.name.as_str()).find(|name| name.starts_with(&begin))
}

/// Waits until every agent has applied a transaction.
pub(crate) async fn reach_all(stage: &mut Stage, cast: &Cast, revision: u64) -> Result<v1::Propagation, Untrue> {
    let agents = cast.fleet.len();
    let expected = format!("{agents} of {agents} agents have applied revision {revision}");
    stage
        .expect(&expected, async || {
            let of = cast.operator.propagation(revision).await?;
            if of.applied as usize == agents { Ok(of) } else { Err(figures::propagation(&of)) }
        })
        .await
}
