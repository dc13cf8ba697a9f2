//! After the story: somebody edits a policy now and then.

use std::time::Duration;

use crate::demo::{
    cast::Cast,
    figures,
    stage::Stage,
    story::{EVERYDAY, everyday, publish, reach_all, revision_of},
};

/// Often enough to see something move, and calm.
const EDIT_EVERY: Duration = Duration::from_secs(5);

/// The everyday policies that the story leaves alone begin here.
const FIRST: u32 = 5;

/// Edits a policy now and then, until nobody reads any more.
pub(crate) async fn go_on(stage: &mut Stage, cast: &Cast) {
    for edit in 1.. {
        tokio::time::sleep(EDIT_EVERY).await;
        let policy = everyday(FIRST + edit % (EVERYDAY - FIRST), 10 + edit);
        // What does not come true is on the screen, and the next edit may fare better.
        let Ok(rules) = publish(stage, cast, &policy).await else { continue };
        let revision = revision_of(&rules);
        if let Ok(of) = reach_all(stage, cast, revision).await {
            let took = of.applied_latency.unwrap_or_default();
            let text = format!(
                "edit {edit}: {} at revision {revision}, {}, p50 {} ms, p99 {} ms",
                policy.name,
                figures::propagation(&of),
                took.p50_ms,
                took.p99_ms
            );
            if stage.screen.has_live() { stage.screen.live(&text) } else { stage.screen.note(&text) }
        }
        if stage.screen.is_closed() {
            return;
        }
    }
}
