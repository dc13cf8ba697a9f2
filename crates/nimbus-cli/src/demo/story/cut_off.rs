//! One agent is cut off, things change, and it comes back for the difference only.

use nimbus_agent::Link;
use nimbus_wire::v1::{self, AgentState};

use crate::demo::{
    cast::Cast,
    figures,
    fleet::{Member, REMOTE, ZONES},
    operator::Policy,
    stage::{Stage, Untrue},
    story::{everyday, everyday_name, reach_all, tables},
    tap::Traffic,
};

/// Somebody who comes for the first time, to see what that costs.
const NEWCOMER: &str = "west-newcomer";

/// A policy that is new meanwhile.
const NEW: &str = "guests";

/// Policies that are edited meanwhile.
const EDITED: [u32; 3] = [1, 2, 3];

/// A policy that is deleted meanwhile.
const DELETED: u32 = 4;

/// An object of its zone for each of these policies.
const EVENTS: u64 = EDITED.len() as u64 + 2;

pub(super) async fn tell(stage: &mut Stage, cast: &Cast) -> Result<(), Untrue> {
    stage.screen.heading("4. One agent is cut off");
    let remote = cast.fleet.member(REMOTE);
    let remote = stage.must("the agent is there", remote)?;
    remote.line.cut();
    stage
        .expect(&format!("the bus takes {REMOTE} for away"), async || {
            let state = cast.operator.agent(REMOTE).await?.state();
            if state == AgentState::Away { Ok(()) } else { Err(state.as_str_name().to_owned()) }
        })
        .await?;
    stage
        .screen
        .fact(&format!("the connection of {REMOTE} is cut; the bus takes it for away"));
    change(stage, cast).await?;
    stage.screen.pause().await;

    let before = remote.line.traffic();
    remote.line.mend();
    in_sync(stage, cast, REMOTE, remote).await?;
    let sent = remote.line.traffic() - before;
    stage.check("it resumes", sent.resumed > 0 && sent.restarted == 0, &format!("{sent:?}"))?;
    stage.check(&figures::events(EVENTS), sent.events == EVENTS, &figures::events(sent.events))?;
    tables::compare(stage, cast).await?;
    stage.screen.fact(&format!("{REMOTE} is back, goes on where it was, and is in sync"));

    let full = full_snapshot(stage, cast).await?;
    let less = sent.events < full.events && sent.bytes < full.bytes;
    stage.check("the difference is less than everything", less, &format!("{sent:?}, {full:?}"))?;
    let told = |traffic: Traffic| format!("{}, {}", figures::events(traffic.events), figures::bytes(traffic.bytes));
    stage.screen.fact(&format!("sent to it: {}", told(sent)));
    stage
        .screen
        .fact(&format!("a full snapshot, as a newcomer in its zone was sent it: {}", told(full)));
    cast.hints.agents(&mut stage.screen);
    stage.screen.pause().await;
    Ok(())
}

/// Changes some policies, and waits until all others have what follows.
async fn change(stage: &mut Stage, cast: &Cast) -> Result<(), Untrue> {
    let new = Policy::new(NEW, &ZONES, &["allow tcp 443", "deny tcp 22"]);
    let policies: Vec<_> = EDITED.into_iter().map(|number| everyday(number, 1)).chain([new]).collect();
    let deleted = everyday_name(DELETED);
    let written = cast.operator.change(&policies, &[&deleted]).await;
    stage.must("the bus takes the changes", written)?;
    stage
        .expect("the reactors have dealt with the changes", async || {
            for policy in &policies {
                cast.operator.reconciled(&policy.name).await?;
            }
            let left = cast.operator.rules_of(&deleted).await?.len();
            if left == 0 { Ok(()) } else { Err(format!("{left} rules of {deleted} are still there")) }
        })
        .await?;
    let head = cast.operator.head().await;
    let head = stage.must("the bus says where it is", head)?;
    let others = cast.fleet.len() - 1;
    let of = stage
        .expect(&format!("all but {REMOTE} have applied the changes"), async || {
            let of = cast.operator.propagation(head.revision).await?;
            let waits = of.pending_agents.iter().map(|pending| pending.agent.as_str()).eq([REMOTE]);
            if of.applied as usize == others && waits { Ok(of) } else { Err(figures::propagation(&of)) }
        })
        .await?;
    let edited = EDITED.len();
    stage.screen.fact(&format!(
        "meanwhile {edited} policies are edited, 1 is deleted, 1 is new: {}",
        figures::propagation(&of)
    ));
    Ok(())
}

/// Waits until an agent and the bus both say that it has everything.
async fn in_sync(stage: &mut Stage, cast: &Cast, id: &str, member: &Member) -> Result<(), Untrue> {
    stage
        .expect(&format!("{id} is connected and in sync"), async || {
            let status = member.handle.status();
            if status.link != Link::InSync || status.unfinished > 0 {
                return Err(format!("{id}: {:?}, {} unfinished", status.link, status.unfinished));
            }
            let v1::AgentInfo { in_sync, applied, last_relevant, .. } = cast.operator.agent(id).await?;
            if in_sync { Ok(()) } else { Err(format!("{id} has applied revision {applied}, of {last_relevant}")) }
        })
        .await
}

/// What somebody is sent who has nothing.
async fn full_snapshot(stage: &mut Stage, cast: &Cast) -> Result<Traffic, Untrue> {
    let started = Member::start(NEWCOMER, "west", &cast.url());
    let newcomer = stage.must("a newcomer starts", started)?;
    in_sync(stage, cast, NEWCOMER, &newcomer).await?;
    let traffic = newcomer.line.traffic();
    newcomer.leave().await;
    let all = cast.fleet.len();
    stage
        .expect(&format!("the newcomer has left, and {all} agents are there"), async || {
            let census = cast.operator.census().await?;
            let there = (census.connected + census.away + census.lost) as usize;
            if there == all { Ok(()) } else { Err(format!("{there} agents")) }
        })
        .await?;
    let head = cast.operator.head().await;
    let head = stage.must("the bus says where it is", head)?;
    reach_all(stage, cast, head.revision).await?;
    Ok(traffic)
}
