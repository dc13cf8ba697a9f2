//! What all services of one bus share.

use std::{collections::BTreeSet, sync::Arc};

use dashmap::DashMap;
use nimbus_core::{Kind, PublisherId};
use nimbus_store::{Collection, Fields, Scope};
use nimbus_wire::v1;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::Instant;
use tonic::Status;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    admission::Admission, config::Config, convert::Converter, fault, fleet::Fleet, lists::Lists, metrics::Metrics,
    schemas::Schemas, sessions::Sessions,
};

/// What all services of one bus share.
pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) store: Collection,
    pub(crate) schemas: Schemas,
    pub(crate) fields: Arc<dyn Fields>,
    pub(crate) sessions: Sessions,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) admission: Mutex<Admission>,
    pub(crate) lists: Lists,
    pub(crate) metrics: Metrics,
    pub(crate) health: HealthReporter,
    heard: DashMap<PublisherId, Heard>,
}

/// When a publisher was last heard of, and what it publishes.
struct Heard {
    at: Instant,
    kinds: BTreeSet<Kind>,
}

/// Reads fields of specs with the schemas that were registered.
pub(crate) struct SchemaFields(pub(crate) Schemas);

/// In the health service: whether every kind that the bus knows is complete.
pub(crate) const READY: &str = "nimbus.ready";

/// A bookmark is sent to every agent again and again; it names this many publishers at most, the most silent ones.
const BOOKMARK_PUBLISHERS: usize = 16;

// === impl Inner ===

impl Inner {
    pub(crate) fn new(config: Config, metrics: Metrics, health: HealthReporter) -> Self {
        let limits = &config.limits;
        metrics.set_limits(&limits.named());
        let schemas = Schemas::new(limits.schemas.clone());
        let fields: Arc<dyn Fields> = Arc::new(SchemaFields(schemas.clone()));
        let store = Collection::new(nimbus_store::Config {
            limits: limits.store.clone(),
            fields: fields.clone(),
            assume_complete: config.assume_complete,
            frame_bytes: limits.frame_bytes,
            group_bytes: limits.group_bytes,
            ..nimbus_store::Config::new(config.epoch)
        });
        let fleet = Arc::new(Fleet::new(&config, metrics.clone()));
        Self {
            store,
            schemas,
            fields,
            sessions: Sessions::new(config.seed, limits.sessions, fleet.clone(), metrics.clone()),
            fleet,
            admission: Mutex::new(Admission::new(limits.snapshot_rate, limits.snapshot_burst, limits.reservations)),
            lists: Lists::new(limits.open_lists),
            metrics,
            health,
            heard: DashMap::new(),
            config,
        }
    }

    pub(crate) fn converter(&self) -> Converter<'_> {
        Converter { schemas: &self.schemas, limits: &self.config.limits, metrics: &self.metrics }
    }

    /// Refuses a publisher of a new name if there are too many.
    pub(crate) fn check_publisher(&self, publisher: &PublisherId) -> Result<(), Status> {
        let max = self.config.limits.publishers;
        if !self.heard.contains_key(publisher) && self.heard.len() >= max {
            self.metrics.refuse("publishers");
            return Err(fault::full("publishers", format!("publishers are limited to {max}")));
        }
        Ok(())
    }

    /// Takes note that a publisher lives.
    pub(crate) fn hear<'a>(&self, publisher: &PublisherId, kinds: impl Iterator<Item = &'a Kind>) {
        let new = || Heard { at: Instant::now(), kinds: BTreeSet::new() };
        let mut heard = self.heard.entry(publisher.clone()).or_insert_with(new);
        heard.at = Instant::now();
        for kind in kinds {
            if !heard.kinds.contains(kind) {
                heard.kinds.insert(kind.clone());
            }
        }
    }

    /// The publishers of the kinds in a scope, the most silent ones first.
    pub(crate) fn ages(&self, covers: impl Fn(&Kind) -> bool) -> Vec<v1::PublisherAge> {
        let now = Instant::now();
        let state = self.store.state();
        let mut ages: Vec<_> = (self.heard.iter())
            .filter(|entry| entry.kinds.iter().any(&covers))
            .map(|entry| v1::PublisherAge {
                publisher: entry.key().to_string(),
                age_ms: u64::try_from((now - entry.at).as_millis()).unwrap_or(u64::MAX),
                synced: state.is_synced(entry.key().as_str()),
            })
            .collect();
        ages.sort_by_key(|age| std::cmp::Reverse(age.age_ms));
        ages
    }

    /// The same, as many as fit into a bookmark.
    pub(crate) fn bookmark_ages(&self, scope: &Scope) -> Vec<v1::PublisherAge> {
        let mut ages = self.ages(|kind| scope.covers(kind));
        ages.truncate(BOOKMARK_PUBLISHERS);
        ages
    }

    /// Says in the health service whether every known kind is complete.
    pub(crate) async fn update_readiness(&self) {
        loop {
            let state = self.store.state();
            let ready = state.kinds().all(|(kind, _)| state.is_complete(kind));
            let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
            self.health.set_service_status(READY, status).await;
            // Another call may have looked later and written earlier.
            let now = self.store.state();
            if now.kinds().all(|(kind, _)| now.is_complete(kind)) == ready {
                return;
            }
        }
    }
}

// === impl SchemaFields ===

impl Fields for SchemaFields {
    fn field(&self, kind: &Kind, spec: &[u8], path: &str) -> Option<String> {
        let any = prost_types::Any::decode(spec).ok()?;
        let path: Vec<&str> = path.split('.').collect();
        self.0.field(kind.as_str(), &any.value, &path)
    }
}
