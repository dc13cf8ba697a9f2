//! What all services of one bus share.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicUsize},
};

use dashmap::DashMap;
use nimbus_core::{Kind, PublisherId};
use nimbus_store::{Collection, Fields, Lost, OpenError, Refused, Scope};
use nimbus_wire::v1;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::{Duration, Instant};
use tonic_health::server::HealthReporter;

use crate::{
    admission::Admission,
    config::Config,
    convert::Converter,
    fleet::Fleet,
    incoming::Incoming,
    lists::Lists,
    metrics::{DiskTimes, Metrics},
    outgoing::Outgoing,
    readiness::Readiness,
    schemas::Schemas,
    sessions::Sessions,
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
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) metrics: Metrics,
    pub(crate) health: HealthReporter,
    pub(crate) readiness: Readiness,
    heard: DashMap<PublisherId, Heard>,
    /// Who looks metrics up.
    pub(crate) observing: Mutex<()>,
    /// How many kinds there were when somebody last looked.
    pub(crate) kinds: AtomicUsize,
}

/// When a publisher was last heard of, and what it publishes.
struct Heard {
    at: Instant,
    kinds: BTreeSet<Kind>,
}

/// Reads fields of specs with the schemas that were registered.
pub(crate) struct SchemaFields(pub(crate) Schemas);

/// Descriptors are kept beside the objects, under names that begin like this.
const SCHEMAS: &str = "schema/";

/// A bookmark is sent to every agent again and again; it names this many publishers at most, the most silent ones.
const BOOKMARK_PUBLISHERS: usize = 16;

/// Tokens of leases begin where the seed says, with room for as many as anybody can ask for.
const TOKEN_SHIFT: u32 = 16;

// === impl Inner ===

impl Inner {
    /// With a collection in memory, or one that is durable, as `open` makes it.
    pub(crate) fn new(
        mut config: Config,
        durable: bool,
        open: impl FnOnce(nimbus_store::Config) -> Result<Collection, OpenError>,
        metrics: Metrics,
        health: HealthReporter,
    ) -> Result<Self, OpenError> {
        let limits = &config.limits;
        metrics.set_limits(&limits.named());
        let schemas = Schemas::new(limits.schemas.clone());
        let fields: Arc<dyn Fields> = Arc::new(SchemaFields(schemas.clone()));
        let collection = nimbus_store::Config {
            limits: limits.store.clone(),
            fields: fields.clone(),
            assume_complete: config.assume_complete,
            frame_bytes: limits.frame_bytes,
            group_bytes: limits.group_bytes,
            watch: Arc::new(DiskTimes::new(metrics.clone())),
            last_token: if durable { 0 } else { config.seed >> TOKEN_SHIFT },
            ..nimbus_store::Config::new(config.epoch)
        };
        let store = open(collection)?;
        config.epoch = store.state().epoch();
        recall(&store, &schemas);
        let limits = &config.limits;
        let kinds = store.state().kinds().count();
        let fleet = Arc::new(Fleet::new(&config, metrics.clone()));
        Ok(Self {
            store,
            schemas,
            fields,
            sessions: Sessions::new(config.seed, limits.sessions, fleet.clone(), metrics.clone()),
            fleet,
            admission: Mutex::new(Admission::new(limits.snapshot_rate, limits.snapshot_burst, limits.reservations)),
            lists: Lists::new(limits.open_lists),
            incoming: Incoming::new(limits, metrics.clone()),
            outgoing: Outgoing::new(limits, metrics.clone()),
            metrics,
            readiness: Readiness::new(health.clone()),
            health,
            heard: DashMap::new(),
            observing: Mutex::default(),
            kinds: AtomicUsize::new(kinds),
            config,
        })
    }

    /// Remembers descriptors for the next process.
    pub(crate) async fn remember(&self, kinds: &[String], request: &v1::RegisterKindsRequest) -> Result<(), Lost> {
        if !self.store.is_durable() {
            return Ok(());
        }
        // A newer version of the same kinds takes the place of the older.
        let request = v1::RegisterKindsRequest { kinds: kinds.to_vec(), ..request.clone() };
        self.store.set_extra(&schema_name(kinds), Some(request.encode_to_vec().into())).await
    }

    pub(crate) fn converter(&self) -> Converter<'_> {
        Converter { schemas: &self.schemas, limits: &self.config.limits, metrics: &self.metrics }
    }

    /// Refuses a publisher of a new name if there are too many.
    pub(crate) fn check_publisher(&self, publisher: &PublisherId) -> Result<(), Refused> {
        let max = self.config.limits.publishers;
        if !self.heard.contains_key(publisher) && self.heard.len() >= max {
            return Err(Refused::Full { limit: "publishers", max });
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

    /// How many publishers there are.
    pub(crate) fn publishers(&self) -> usize {
        self.heard.len()
    }

    /// Since the most silent publisher was heard.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        let oldest = self.heard.iter().map(|entry| entry.at).min();
        oldest.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
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
        ages.sort_unstable_by(|one, other| (other.age_ms, &one.publisher).cmp(&(one.age_ms, &other.publisher)));
        ages
    }

    /// The same, as many as fit into a bookmark.
    pub(crate) fn bookmark_ages(&self, scope: &Scope) -> Vec<v1::PublisherAge> {
        let mut ages = self.ages(|kind| scope.covers(kind));
        ages.truncate(BOOKMARK_PUBLISHERS);
        ages
    }
}

/// Takes back what a process before this one had: leases, and descriptors of kinds. What cannot be used any more is said,
/// and left where it is; everybody registers again when they start.
fn recall(store: &Collection, schemas: &Schemas) {
    if let Err(error) = store.restore_leases(Instant::now().into_std()) {
        tracing::error!(%error, "leases cannot be read, their holders must take them again");
    }
    for (name, bytes) in store.extras(SCHEMAS) {
        let registered =
            v1::RegisterKindsRequest::decode(bytes)
                .map_err(|error| error.to_string())
                .and_then(|request| {
                    schemas
                        .register(&request.descriptor_set, &request.kinds)
                        .map_err(|error| error.to_string())
                });
        if let Err(error) = registered {
            tracing::error!(name, error, "descriptors cannot be used, their kinds must be registered again");
        }
    }
}

fn schema_name(kinds: &[String]) -> String {
    format!("{SCHEMAS}{}", kinds.join(","))
}

// === impl SchemaFields ===

impl Fields for SchemaFields {
    fn field(&self, kind: &Kind, spec: &[u8], path: &str) -> Option<String> {
        let any = prost_types::Any::decode(spec).ok()?;
        let path: Vec<&str> = path.split('.').collect();
        self.0.field(kind.as_str(), &any.value, &path)
    }
}
