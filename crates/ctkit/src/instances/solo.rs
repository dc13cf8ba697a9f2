//! The course of a controller that has one instance only.

use std::{future::Future, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::instances::{
    events::Finished,
    view::{Seat, Standing, View},
};

/// The only shard is ours from the beginning, until `shutdown`; then what runs has `grace` to end.
pub(crate) async fn run(
    view: &watch::Sender<View>,
    finished: &Finished,
    grace: Duration,
    shutdown: impl Future<Output = ()> + Send,
) {
    let since = Instant::now().into_std();
    view.send_modify(|view| {
        view.standing = Standing::Active;
        view.seats
            .fill(Some(Seat { guard: None, number: 1, since, until: None, draining: false }));
    });
    shutdown.await;
    view.send_modify(|view| {
        view.standing = Standing::Leaving;
        view.seats.iter_mut().flatten().for_each(|seat| seat.draining = true);
    });
    if timeout(grace, finished.take()).await.is_err() {
        tracing::warn!("stopped while something still ran");
    }
    view.send_modify(View::clear);
}
