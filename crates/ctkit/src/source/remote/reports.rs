//! What agents report, as it changes; comes back by itself.

use std::{collections::BTreeSet, future::pending, sync::Arc};

use nimbus_client::{Advice, advise};
use nimbus_core::{Epoch, Kind};
use nimbus_wire::v1::{self, watch_status_response::Event};
use rand::RngExt as _;
use tokio::{sync::mpsc::Sender, time::timeout};
use tonic::{Status, Streaming};

use crate::{
    source::remote::link::{Link, News},
    target::TargetEvent,
};

/// What agents report about some kinds.
pub(crate) struct Reports {
    link: Arc<Link>,
    kinds: Vec<String>,
}

/// An agent that does not exist: whoever lists it learns which bus this is, and nothing else.
const NOBODY: &str = "-";

// === impl Reports ===

impl Reports {
    pub(crate) fn new(link: Arc<Link>, kinds: &BTreeSet<Kind>) -> Self {
        Self { link, kinds: kinds.iter().map(ToString::to_string).collect() }
    }

    /// Goes on until nobody wants to know any more.
    pub(crate) async fn run(self, events: Sender<TargetEvent>) {
        let (mut rng, mut news, mut attempts) = (self.link.rng(), News::default(), 0);
        let mut lines = self.link.lines();
        loop {
            lines.mark_unchanged();
            let status = match self.open().await {
                Ok((epoch, stream)) => match follow(epoch, stream, &events, &mut news, &mut attempts).await {
                    Some(status) => {
                        // The bus may be another one now. On a connection of which that is not known yet, a call would fail.
                        self.link.give_up_line();
                        status
                    }
                    None => return,
                },
                Err(status) => status,
            };
            let advice = advise(&status);
            let wait = match advice {
                Advice::After(wait) => wait,
                Advice::Backoff => self.link.backoff.delay(attempts, rng.random()),
                Advice::Superseded | Advice::Refused => self.link.backoff.max,
            };
            attempts = attempts.saturating_add(1);
            let (reason, wait_ms) = (status.message(), wait.as_millis());
            match (news.is(false), advice) {
                (true, Advice::Refused) => tracing::error!(reason, wait_ms, "the bus does not tell what agents report"),
                (true, _) => tracing::info!(reason, wait_ms, "no reports"),
                (false, _) => tracing::debug!(reason, wait_ms, "still no reports"),
            }
            // Calls that got through may have reached another bus, and this is where one learns of that.
            let back = async {
                match advice {
                    Advice::Backoff => drop(lines.changed().await),
                    _ => pending().await,
                }
            };
            tokio::select! {
                () = back => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Connects, finds out which bus it is, and begins to watch. The connection is its own: what is not read here must
    /// not hold up calls.
    async fn open(&self) -> Result<(Epoch, Streaming<v1::WatchStatusResponse>), Status> {
        let opening = async {
            let line = self.link.dial().await?;
            let nobody = v1::ListAgentsRequest { agents: vec![NOBODY.to_owned()], ..Default::default() };
            let epoch = line.clone().fleet().list_agents(self.link.request(nobody)).await?.into_inner().epoch;
            let request = v1::WatchStatusRequest { kinds: self.kinds.clone(), selector: String::new() };
            let stream = line.fleet().watch_status(self.link.request(request)).await?.into_inner();
            Ok((Epoch(epoch), stream))
        };
        let late = |_| Status::unavailable(format!("no answer within {:.1} s", self.link.deadline.as_secs_f64()));
        timeout(self.link.deadline, opening).await.map_err(late)?
    }
}

/// Hands on what comes, and says why it ended; nothing if nobody wants to know any more. A connection that is dead is
/// found by its pings.
async fn follow(
    epoch: Epoch,
    mut stream: Streaming<v1::WatchStatusResponse>,
    events: &Sender<TargetEvent>,
    news: &mut News,
    attempts: &mut u32,
) -> Option<Status> {
    if news.is(true) {
        tracing::info!(%epoch, "following reports");
    }
    events.send(TargetEvent::Connected(epoch)).await.ok()?;
    loop {
        let event = match stream.message().await {
            Ok(Some(message)) => message.event,
            Ok(None) => return Some(Status::unavailable("the bus closed the stream")),
            Err(status) => return Some(status),
        };
        let event = match event {
            // An event of a sort that came later than this program.
            None => continue,
            Some(Event::Report(report)) => TargetEvent::Report(Box::new(report)),
            Some(Event::Forgotten(agent)) => TargetEvent::Forgotten(agent),
            Some(Event::CaughtUp(_)) => {
                *attempts = 0;
                TargetEvent::CaughtUp
            }
            // As after a new connection, those that are not named before it has caught up are to be forgotten.
            Some(Event::Restarted(_)) => TargetEvent::Connected(epoch),
        };
        events.send(event).await.ok()?;
    }
}
