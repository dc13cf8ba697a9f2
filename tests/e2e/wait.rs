//! Waiting for conditions. The time is a guard against hanging, nothing else: no test depends on how long it is.

use std::{future::Future, time::Duration};

/// Nothing takes as long.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

/// The same where connections wait for one another, and TCP sends again what was lost: later each time.
pub(crate) const LONG: Duration = Duration::from_secs(240);

/// Waits for something that is going to happen, however long it takes.
pub(crate) async fn for_long<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future)
        .await
        .unwrap_or_else(|_| panic!("waited for {LONG:?} in vain for {what}"))
}

/// Waits for something that is going to happen.
pub(crate) async fn for_it<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(GUARD, future)
        .await
        .unwrap_or_else(|_| panic!("waited for {GUARD:?} in vain for {what}"))
}

/// Waits until a condition holds that nothing announces.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let poll = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    for_it(what, poll).await;
}
