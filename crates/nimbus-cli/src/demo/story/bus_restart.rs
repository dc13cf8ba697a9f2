//! The bus is killed and started again, and nothing has to be sent.

use nimbus_wire::v1;

use crate::demo::{
    cast::Cast,
    figures,
    stage::{Stage, Untrue},
    story::{controller_restart::at_rest, reach_all, tables},
};

pub(super) async fn tell(stage: &mut Stage, cast: &mut Cast) -> Result<(), Untrue> {
    stage.screen.heading("6. The bus is killed");
    let before = at_rest(stage, cast).await?;
    let listed = cast.operator.rules().await;
    let rules = stage.must("the rules are listed", listed)?;
    let traffic = cast.fleet.traffic();
    let killed = cast.kill_bus().await;
    let killed = stage.must("the bus is killed", killed)?;
    let started = cast.start_bus().await;
    let started = stage.must("the bus starts again", started)?;
    stage
        .screen
        .fact(&format!("kill -9 {killed}; process {started} goes on with the same file"));

    let agents = cast.fleet.len() as u64;
    stage
        .expect(&format!("{agents} agents are back and in sync"), async || {
            let census = cast.operator.census().await?;
            if u64::from(census.connected) == agents && census.behind == 0 {
                return Ok(());
            }
            Err(format!("{} of {agents} agents are back, {} not in sync yet", census.connected, census.behind))
        })
        .await?;
    let sent = cast.fleet.traffic() - traffic;
    let resumed = sent.resumed >= agents && sent.restarted == 0;
    stage.check(&format!("{agents} agents go on where they were"), resumed, &format!("{sent:?}"))?;
    stage.check("no object is sent", sent.events == 0, &figures::events(sent.events))?;
    let bytes = figures::bytes(sent.bytes);
    stage.screen.fact(&format!(
        "{agents} of {agents} agents are back, all of them where they were: {}, {bytes} of greetings",
        figures::events(sent.events)
    ));

    let head = cast.operator.head().await;
    let after = stage.must("the bus says where it is", head)?;
    reach_all(stage, cast, after.revision).await?;
    tables::compare(stage, cast).await?;
    let listed = cast.operator.rules().await;
    let now = stage.must("the rules are listed", listed)?;
    let versions =
        |rules: &[v1::Object]| -> Vec<_> { rules.iter().map(|rules| (rules.name.clone(), rules.revision)).collect() };
    stage.check("the epoch is the same", before.epoch == after.epoch, &format!("{before:?}, {after:?}"))?;
    let same = versions(&rules) == versions(&now);
    stage.check("every rule is there, at the revision that it had", same, "they differ")?;
    stage.screen.fact(&format!(
        "same epoch {:016x}; all {} rules are there, at the revisions that they had",
        after.epoch,
        now.len()
    ));
    // The bus knew nobody at first: the controller must have heard of all who came back.
    at_rest(stage, cast).await?;
    stage.screen.fact(&format!("every policy says that {agents} of {agents} agents have it"));
    stage.screen.pause().await;
    Ok(())
}
