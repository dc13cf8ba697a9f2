//! The controller is restarted, and nobody notices.

use crate::demo::{
    cast::Cast,
    figures,
    operator::Head,
    stage::{Stage, Untrue},
};

pub(super) async fn tell(stage: &mut Stage, cast: &mut Cast) -> Result<(), Untrue> {
    stage.screen.heading("5. The controller is restarted");
    let before = at_rest(stage, cast).await?;
    let traffic = cast.fleet.traffic();
    let stopped = cast.stop_controller().await;
    stage.must("the controller stops", stopped)?;
    let started = cast.start_controller().await;
    stage.must("another one starts", started)?;
    let after = at_rest(stage, cast).await?;
    let policies = cast.operator.statuses().await;
    let policies = stage.must("the policies are listed", policies)?.len();
    stage
        .screen
        .fact(&format!("stopped, and started again: it has looked at all {policies} policies"));

    let sent = cast.fleet.traffic() - traffic;
    let is_quiet = (sent.events, sent.resumed, sent.restarted) == (0, 0, 0);
    stage.check("nothing is sent to agents", is_quiet, &format!("{sent:?}"))?;
    let life = if sent.bytes == 0 { "" } else { " of signs of life" };
    let (agents, bytes) = (cast.fleet.len(), figures::bytes(sent.bytes));
    stage
        .screen
        .fact(&format!("sent to {agents} agents: {}, {bytes}{life}", figures::events(sent.events)));
    let seen = format!("{} before, {} after", before.revision, after.revision);
    stage.check("epoch and revision are as before", before == after, &seen)?;
    stage.screen.fact(&format!("revision unchanged: {seen}"));
    stage.screen.pause().await;
    Ok(())
}

/// Waits until the controller has nothing left to do and says of every policy that every agent has it. Gives where the bus
/// stands then.
pub(super) async fn at_rest(stage: &mut Stage, cast: &Cast) -> Result<Head, Untrue> {
    let agents = cast.fleet.len();
    let controller = cast.controller();
    let controller = stage.must("the controller runs", controller)?;
    stage
        .expect(&format!("every policy has a status that says {agents} of {agents}"), async || {
            controller.is_ready()?;
            controller.settled().await?;
            let statuses = cast.operator.statuses().await?;
            let differs = |status: &crate::demo::kinds::NetworkPolicyStatus| {
                (status.agents as usize, status.applied as usize) != (agents, agents)
            };
            match statuses.iter().find(|(_, status)| differs(status)) {
                Some((name, status)) => Err(format!("{name}: {} of {}", status.applied, status.agents)),
                None => cast.operator.head().await,
            }
        })
        .await
}
