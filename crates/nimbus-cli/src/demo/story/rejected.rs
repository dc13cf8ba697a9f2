//! One agent rejects, and everybody can see who and why.

use nimbus_wire::v1::Verdict;

use crate::demo::{
    cast::Cast,
    figures,
    fleet::{SMALL, SMALL_ROOM, ZONES},
    operator::Policy,
    stage::{Stage, Untrue},
    story::{WEB, of_zone, publish, reach_all, revision_of},
};

/// More than fits into the smallest table.
const TOO_MANY: [&str; 6] =
    ["allow tcp 443", "allow tcp 80", "allow tcp 22 from 10.0.0.0/8", "deny udp 53", "deny tcp 23", "deny tcp 25"];

/// As much as fits.
const FEWER: &[&str] = TOO_MANY.split_at(3).0;

pub(super) async fn tell(stage: &mut Stage, cast: &Cast) -> Result<(), Untrue> {
    stage.screen.heading("3. One agent rejects");
    let count = TOO_MANY.len();
    stage
        .screen
        .note(&format!("{WEB} gets {count} rules; in the table of {SMALL} there is room for {SMALL_ROOM}"));
    let small = cast.fleet.member(SMALL);
    let small = stage.must("the small agent is there", small)?;
    let listed = cast.operator.rules_of(WEB).await;
    let rules = stage.must("the rules are listed", listed)?;
    let name = of_zone(&rules, "south").unwrap_or_default();
    let before = small.table.statements(name);
    let rules = publish(stage, cast, &Policy::new(WEB, &ZONES, &TOO_MANY)).await?;

    let agents = cast.fleet.len();
    let expected = format!("{} of {agents} agents have applied it, and {SMALL} has failed", agents - 1);
    let of = stage
        .expect(&expected, async || {
            let of = cast.operator.propagation(revision_of(&rules)).await?;
            let is_small = of.failures.iter().map(|failure| failure.agent.as_str()).eq([SMALL]);
            if of.applied as usize == agents - 1 && is_small { Ok(of) } else { Err(figures::propagation(&of)) }
        })
        .await?;
    stage.screen.fact(&figures::propagation(&of));
    let explained = cast.operator.explain(SMALL, name).await;
    let explained = stage.must("the bus explains it", explained)?;
    let is_failed = explained.verdict() == Verdict::Failed;
    stage.check("the bus says that it failed", is_failed, explained.verdict().as_str_name())?;
    stage.screen.fact(&format!("why? {}", explained.explanation));
    cast.hints.explain(&mut stage.screen, SMALL, name);
    let kept = small.table.statements(name);
    let is_kept = kept == before && !kept.is_empty();
    stage.check("the last good version stays in force", is_kept, &kept.join(", "))?;
    stage
        .screen
        .fact(&format!("the last good version stays in force there: {}", kept.join(", ")));

    let rules = publish(stage, cast, &Policy::new(WEB, &ZONES, FEWER)).await?;
    let of = reach_all(stage, cast, revision_of(&rules)).await?;
    stage
        .screen
        .fact(&format!("{WEB} is cut down to {} rules: {}", FEWER.len(), figures::propagation(&of)));
    stage.screen.pause().await;
    Ok(())
}
