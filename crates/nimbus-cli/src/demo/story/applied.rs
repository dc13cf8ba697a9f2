//! A policy is applied, and the reactor makes rules of it.

use crate::demo::{
    cast::Cast,
    fleet::ZONES,
    operator::Policy,
    stage::{Stage, Untrue},
    story::{WEB, publish, revision_of},
};

/// What it says at first.
const RULES: [&str; 2] = ["allow tcp 443", "allow tcp 22 from 10.0.0.0/8"];

/// Gives the transaction in which the rules were published.
pub(super) async fn tell(stage: &mut Stage, cast: &Cast) -> Result<u64, Untrue> {
    stage.screen.heading("1. A policy is applied");
    stage
        .screen
        .note(&format!("{WEB}: {}; for the zones {}", RULES.join(", "), ZONES.join(", ")));
    let rules = publish(stage, cast, &Policy::new(WEB, &ZONES, &RULES)).await?;
    let kept = cast.operator.reconciled(WEB).await;
    let policy = stage.must("the policy is kept", kept)?;
    stage.screen.fact(&format!(
        "the bus keeps demo.v1.NetworkPolicy {WEB}, generation {}, and its reactor has run",
        policy.generation
    ));
    let revision = revision_of(&rules);
    let together = rules.len() == ZONES.len() && rules.iter().all(|rules| rules.revision == revision);
    let seen: Vec<_> = rules.iter().map(|rules| format!("{} at {}", rules.name, rules.revision)).collect();
    stage.check("one child for each zone, all at one revision", together, &seen.join(", "))?;
    let names: Vec<_> = rules.iter().map(|rules| rules.name.as_str()).collect();
    stage
        .screen
        .fact(&format!("it published {} children in one transaction, revision {revision}:", rules.len()));
    stage.screen.note(&format!("  {}", names.join(" ")));
    stage.screen.pause().await;
    Ok(revision)
}
