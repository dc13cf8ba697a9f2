//! What was published reaches every agent.

use crate::demo::{
    cast::Cast,
    figures,
    fleet::ZONES,
    stage::{Stage, Untrue},
    story::{WEB, reach_all},
};

pub(super) async fn tell(stage: &mut Stage, cast: &Cast, revision: u64) -> Result<(), Untrue> {
    stage.screen.heading("2. It reaches every agent");
    let of = reach_all(stage, cast, revision).await?;
    let percent = 100 * of.applied / of.agents.max(1);
    stage.screen.fact(&format!("{}: {percent} %", figures::propagation(&of)));
    let timed = of.applied_latency.unwrap_or_default().count;
    stage.check("the bus knows how long it took", timed > 0, "it does not")?;
    stage.screen.fact(&figures::latency(&of));

    let listed = cast.operator.rules_of(WEB).await;
    let rules = stage.must("the rules are listed", listed)?;
    let (mut tables, mut statements) = (0, Vec::new());
    for zone in ZONES {
        let name = rules
            .iter()
            .map(|rules| rules.name.as_str())
            .find(|name| name.starts_with(&format!("{WEB}-{zone}")));
        for (_, member) in cast.fleet.of_zone(zone) {
            statements = name.and_then(|name| member.table.statements(name)).unwrap_or_default();
            tables += usize::from(!statements.is_empty());
        }
    }
    let all = cast.fleet.len();
    stage.check("the rules are in the table of every agent", tables == all, &format!("{tables} of {all}"))?;
    stage
        .screen
        .fact(&format!("and is in force in {tables} tables: {}", statements.join(", ")));
    if let Some(rules) = rules.first() {
        cast.hints.propagation(&mut stage.screen, &rules.name);
    }
    stage.screen.pause().await;
    Ok(())
}
