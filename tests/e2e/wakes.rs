//! A stream that was woken for nothing must still be woken for the next change.
//!
//! It once was not: a wake-up that found nothing to send left no waker behind, so that the next change waited for the
//! next bookmark, up to fifteen seconds. Any report and the end of any publisher's sync is such a wake-up.

use crate::{demo, honest::World};

#[tokio::test]
async fn a_report_does_not_delay_the_change_after_it() {
    let mut world = World::new().await;
    for sequence in 1..=5 {
        world.report(sequence).await;
        world.goes_on().await;
    }
}

#[tokio::test]
async fn a_sync_of_somebody_else_does_not_delay_the_change_after_it() {
    let mut world = World::new().await;
    for _ in 0..5 {
        world.writer.sync(tokio_stream::iter(demo::sync("somebody", Vec::new()))).await.unwrap();
        world.goes_on().await;
    }
}
