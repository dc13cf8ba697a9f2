//! The task that owns a watch.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, Weak},
};

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::sync::watch;
use tokio_stream::StreamExt as _;

use crate::{
    reflector::{config::ReflectorConfig, intake::Intake, registry::Inner, shared::Shared, status::WatchPhase},
    source::Event,
};

/// Watches one kind, for as long as somebody wants it.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    intake: Intake,
    config: ReflectorConfig,
    random: SmallRng,
}

// === impl Worker ===

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, config: ReflectorConfig) -> Self {
        let random = SmallRng::seed_from_u64(config.seed);
        Self { intake: Intake::new(shared.kind.clone()), shared, config, random }
    }

    /// Watches until nobody has used the reflector for the time of the linger.
    pub(crate) async fn run(self, registry: Weak<Inner>) {
        let (shared, linger) = (self.shared.clone(), self.config.linger);
        let mut watching = pin!(self.watch());
        loop {
            tokio::select! {
                never = &mut watching => match never {},
                () = shared.unused_for(linger) => {
                    // Somebody may come until the registry has let go of it.
                    if registry.upgrade().is_none_or(|registry| registry.retire(&shared)) {
                        tracing::debug!(kind = %shared.kind, "watch is no longer needed");
                        return;
                    }
                }
            }
        }
    }

    async fn watch(mut self) -> Infallible {
        let mut renewals = self.shared.renewals();
        loop {
            let Some(error) = self.follow(&mut renewals).await else { continue };
            let attempt = self.shared.status().failures;
            let delay = self.config.backoff.delay(attempt, self.random.random());
            tracing::info!(kind = %self.shared.kind, error = &*error, retry.after = ?delay, "watch broke off");
            self.shared.failed(error);
            tokio::time::sleep(delay).await;
        }
    }

    /// Follows one watch and says why it broke off; `None` if another one was asked for.
    async fn follow(&mut self, renewals: &mut watch::Receiver<u64>) -> Option<Arc<str>> {
        let number = *renewals.borrow_and_update();
        let from = self.intake.begin();
        let mut events = self.shared.source.watch(&self.shared.kind, from);
        self.shared.began(if from.is_some() { WatchPhase::Live } else { WatchPhase::Listing });
        let mut has_said = false;
        loop {
            let event = tokio::select! {
                // Whoever asks while a watch begins gets one more when that has said where it is: so many may ask, however long
                // a list takes.
                Ok(()) = renewals.changed(), if has_said => return None,
                event = events.next() => event,
            };
            let event = match event {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Some(error.to_string().into()),
                None => return Some("the source ended the watch".into()),
            };
            let says_where = !matches!(event, Event::Listing(_));
            let taken = match self.shared.source.state() {
                Some(state) => Ok(self.intake.look(&event, &state)),
                None => self.intake.take(event),
            };
            match taken {
                Ok(Some(news)) => self.shared.publish(news),
                Ok(None) => {}
                Err(broken) => return Some(broken.to_string().into()),
            }
            if says_where {
                has_said = true;
                self.shared.renewed(number);
            }
            // A long list may come without a pause.
            tokio::task::consume_budget().await;
        }
    }
}
