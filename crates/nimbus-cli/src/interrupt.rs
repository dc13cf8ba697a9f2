//! The end of a command by a signal.

use std::{future::Future, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use crate::failure::{Exit, Failure};

/// What a command has left to do when it is interrupted, such as to put a terminal right, takes no time. Whoever is stuck,
/// because nobody reads its output, is ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// Does something until it is done, or until Ctrl-C or SIGTERM: then it is dropped where it is.
pub(crate) async fn or<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let listening = || Ok::<_, std::io::Error>((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?));
    let (mut interrupt, mut terminate) = match listening() {
        Ok(signals) => signals,
        Err(error) => return Err(Failure::from(format!("cannot listen to signals: {error}"))),
    };
    let (tell, told) = oneshot::channel();
    // In a task of its own: the command itself may be stuck.
    tokio::spawn(async move {
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        };
        // Fails only if the command has ended.
        tell.send(exit).ok();
        tokio::select! {
            _ = interrupt.recv() => {}
            () = tokio::time::sleep(PATIENCE) => {}
        }
        std::process::exit(exit as i32);
    });
    tokio::select! {
        biased;
        ended = command => ended,
        exit = told => Err(Failure::silent(exit.unwrap_or(Exit::Interrupted))),
    }
}
