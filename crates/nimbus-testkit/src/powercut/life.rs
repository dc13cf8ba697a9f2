//! One life of the bus, from the start to the kill, as those see it who call it.

use std::{sync::Arc, time::Duration};

use nimbus_client::Channel;
use nimbus_wire::v1::{bus_client::BusClient, leases_client::LeasesClient, publisher_client::PublisherClient};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tonic::{Code, Response, Status};

use crate::powercut::{whereabouts::endpoint, witness::Witness};

/// One life of the bus.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) channel: Channel,
    pub(crate) witness: Arc<Witness>,
    pub(crate) pace: watch::Receiver<Pace>,
    /// Told when a sync is half done.
    pub(crate) syncing: Arc<Notify>,
}

/// How fast to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Steady,
    /// As fast as the bus answers, so that commits are made of many writes.
    Burst,
    /// The bus is being killed.
    Over,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    Done(T),
    /// The bus refused it: nothing has changed.
    Refused(Status),
    /// Nobody knows what became of it.
    Lost,
}

/// A call that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

// === impl Life ===

impl Life {
    pub(crate) fn bus(&self) -> BusClient<Channel> {
        BusClient::with_origin(self.channel.clone(), endpoint().uri().clone())
    }

    pub(crate) fn publisher(&self) -> PublisherClient<Channel> {
        PublisherClient::with_origin(self.channel.clone(), endpoint().uri().clone())
    }

    pub(crate) fn leases(&self) -> LeasesClient<Channel> {
        LeasesClient::with_origin(self.channel.clone(), endpoint().uri().clone())
    }

    /// Waits until it is time for the next write. Says whether there should be one.
    pub(crate) async fn pause(&mut self, interval: Duration) -> bool {
        let calm = async {
            // An error means that nobody will change the pace any more.
            drop(self.pace.wait_for(|pace| *pace != Pace::Steady).await);
        };
        tokio::select! {
            () = sleep(interval) => {}
            () = calm => {}
        }
        *self.pace.borrow() != Pace::Over
    }

    /// Waits for the answer of a call, or its end. Whatever the bus has answered before it was killed counts.
    pub(crate) async fn call<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Answer<T> {
        let status = match timeout(PATIENCE, call).await {
            Ok(Ok(response)) => return Answer::Done(response.into_inner()),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded(format!("a call was not answered within {PATIENCE:?}")),
        };
        let answered = [Code::InvalidArgument, Code::NotFound, Code::FailedPrecondition, Code::Aborted];
        if answered.contains(&status.code()) || status.code() == Code::ResourceExhausted {
            return Answer::Refused(status);
        }
        if *self.pace.borrow() != Pace::Over {
            self.witness
                .accuse(format_args!("a call failed though the bus was not killed: {status:?}"));
        }
        Answer::Lost
    }
}
