//! What was published reaches every agent.

use crate::demo::{
    cast::Cast,
    figures,
    fleet::REMOTE,
    stage::{Stage, Untrue},
    story::{WEB, of_zone, reach_all, tables},
};

pub(super) async fn tell(stage: &mut Stage, cast: &Cast, revision: u64) -> Result<(), Untrue> {
    stage.screen.heading("2. It reaches every agent");
    let of = reach_all(stage, cast, revision).await?;
    let percent = 100 * of.applied / of.agents.max(1);
    stage.screen.fact(&format!("{}: {percent} %", figures::propagation(&of)));
    let timed = of.applied_latency.unwrap_or_default().count;
    stage.check("the bus knows how long it took", timed > 0, "it does not")?;
    stage.screen.fact(&figures::latency(&of));

    tables::compare(stage, cast).await?;
    let listed = cast.operator.rules_of(WEB).await;
    let rules = stage.must("the rules are listed", listed)?;
    let in_force = cast
        .fleet
        .member(REMOTE)
        .map(|member| of_zone(&rules, "west").map(|name| member.table.statements(name)));
    let statements = stage.must("the agent is there", in_force)?.unwrap_or_default();
    stage
        .screen
        .fact(&format!("it is in force in {} tables: {}", cast.fleet.len(), statements.join(", ")));
    if let Some(rules) = rules.first() {
        cast.hints.propagation(&mut stage.screen, &rules.name);
    }
    stage.screen.pause().await;
    Ok(())
}
