//! Everybody comes.

use crate::demo::{
    cast::Cast,
    fleet::{Fleet, ZONES},
    stage::{Stage, Untrue},
    story::{EVERYDAY, everyday},
};

/// More names than this are only counted.
const NAMED: usize = 9;

pub(super) async fn tell(stage: &mut Stage, cast: &mut Cast, agents: u32) -> Result<(), Untrue> {
    let intro = format!("nimbus demo: a bus, a controller and {agents} agents on this machine. Ctrl-C ends it.");
    stage.screen.line(&intro);
    stage.screen.line("");
    let started = cast.start_bus().await;
    let process = stage.must("a bus starts", started)?;
    let (url, store) = (cast.url(), cast.store().display().to_string());
    stage
        .screen
        .fact(&format!("the bus listens at {url}: process {process}, objects in {store}"));

    let started = cast.start_controller().await;
    stage.must("a controller starts", started)?;
    let policies: Vec<_> = (1..=EVERYDAY).map(|number| everyday(number, 0)).collect();
    let written = cast.operator.change(&policies, &[]).await;
    stage.must("the bus takes everyday policies", written)?;
    let expected = (EVERYDAY as usize) * ZONES.len();
    let controller = cast.controller();
    let controller = stage.must("the controller runs", controller)?;
    stage
        .expect(&format!("the controller has published {expected} rules"), async || {
            controller.is_ready()?;
            let rules = cast.operator.rules().await?.len();
            if rules == expected { Ok(()) } else { Err(format!("{rules} of {expected} rules")) }
        })
        .await?;
    let zones = ZONES.join(", ");
    stage.screen.fact(&format!(
        "the controller runs: {EVERYDAY} policies that were there are {expected} rules for the zones {zones}"
    ));

    let url = cast.url();
    let started = cast.fleet.start(&url, agents);
    stage.must("agents start", started)?;
    stage
        .expect(&format!("{agents} agents are connected and in sync"), async || {
            let census = cast.operator.census().await?;
            if census.connected == agents && census.behind == 0 {
                return Ok(());
            }
            Err(format!("{} of {agents} agents are connected, {} not in sync yet", census.connected, census.behind))
        })
        .await?;
    let traffic = cast.fleet.traffic();
    stage.screen.fact(&format!(
        "{agents} agents are in sync, {EVERYDAY} objects each, {} events in all: {}",
        traffic.events,
        names(&cast.fleet)
    ));
    cast.hints.first(&mut stage.screen);
    stage.screen.pause().await;
    Ok(())
}

fn names(fleet: &Fleet) -> String {
    let named: Vec<_> = fleet.names().take(NAMED).collect();
    let more = if fleet.len() > NAMED { " …" } else { "" };
    format!("{}{more}", named.join(" "))
}
