//! How a bus is configured.

use std::time::Duration;

use nimbus_core::Epoch;

use crate::schemas::SchemaLimits;

/// How a bus is configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// Identity of the history that begins with this bus. A restarted in-memory bus needs another one.
    pub epoch: Epoch,
    /// Where session numbers begin, and tokens of leases; they should be hard to guess, and others after a restart.
    pub seed: u64,
    /// How often a subscriber that has everything is told so, with its digest and the ages of publishers.
    pub bookmark_interval: Duration,
    /// Connections are pinged this often, and dropped if the answer takes as long.
    pub keepalive: Duration,
    /// A new connection must begin to speak within this time.
    pub handshake_timeout: Duration,
    /// When stopping, subscribers are sent away over this time, and connections closed after it.
    pub drain: Duration,
    /// An agent without a session is lost after this long.
    pub lost_after: Duration,
    /// An agent without a session is forgotten after this long.
    pub forget_after: Duration,
    /// Every kind is complete from the beginning. For trying things out: after a restart, agents remove what has not
    /// been published again yet.
    pub assume_complete: bool,
    /// What the bus accepts.
    pub limits: Limits,
}

/// What the bus accepts; beyond it, callers get a clear status and nothing is lost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// What the collection accepts.
    pub store: nimbus_store::Limits,
    /// What descriptors are accepted.
    pub schemas: SchemaLimits,
    /// Connections at the same time; those beyond it are closed at once.
    pub connections: usize,
    /// Subscriptions at the same time.
    pub sessions: usize,
    /// Publishers, by name. They are controllers, a few for each kind: more is somebody making up names.
    pub publishers: usize,
    /// Bytes of one request.
    pub message_bytes: usize,
    /// Fields and elements of one request, on its two outer levels, before it is even decoded.
    pub message_parts: usize,
    /// Bytes of all requests that are not complete yet; beyond it, those that have taken longest are refused.
    pub incoming_bytes: usize,
    /// Bytes of answers that wait for somebody to read them; beyond it, those that have waited longest are dropped. Frames of
    /// subscriptions are shared, and are not among them.
    pub outgoing_bytes: usize,
    /// Bytes of one frame, except where one object is larger.
    pub frame_bytes: usize,
    /// Kinds named in one request.
    pub request_kinds: usize,
    /// Pairs of manager and kind in one resume.
    pub origins: usize,
    /// Names, namespaces, field tests and the like in one filter.
    pub filter_terms: usize,
    /// Labels of one agent.
    pub agent_labels: usize,
    /// Objects on one page of a list.
    pub page_objects: usize,
    /// Bytes on one page of a list, nearly.
    pub page_bytes: usize,
    /// Lists that are being paged through at the same time; beyond it, the oldest must start again.
    pub open_lists: usize,
    /// Agents that are remembered; beyond it, those that have been lost for longest are forgotten.
    pub agents: usize,
    /// Exceptions kept for one agent; beyond it, reports are refused.
    pub exceptions: usize,
    /// Rich statuses kept for one agent; more are refused, and the rest of the report is taken.
    pub statuses: usize,
    /// Bytes of one rich status; a larger one is refused in the same way.
    pub status_bytes: usize,
    /// Bytes of exceptions of one agent that are kept, nearly as memory holds them, and as many of its rich statuses. A
    /// report with more exceptions is refused; statuses that find no room are refused, and the rest of the report is taken.
    pub report_bytes: usize,
    /// The same for all agents together. Agents that are lost are forgotten before exceptions are refused.
    pub reports_bytes: usize,
    /// Calls of `WaitFor` and `WatchStatus` at the same time.
    pub watches: usize,
    /// Bytes of snapshots that may be sent per second, on average over `snapshot_burst`.
    pub snapshot_rate: u64,
    /// Bytes of snapshots that may be sent at once.
    pub snapshot_burst: u64,
    /// Subscribers that were told when to come back, and whose turn is kept.
    pub reservations: usize,
    /// Bytes that large groups under way may hold on to in all.
    pub group_bytes: usize,
    /// Requests at the same time on one connection.
    pub streams: u32,
}

// === impl Config ===

impl Config {
    /// The defaults, for a history of that identity.
    pub fn new(epoch: Epoch, seed: u64) -> Self {
        Self {
            epoch,
            seed,
            bookmark_interval: Duration::from_secs(15),
            keepalive: Duration::from_secs(20),
            handshake_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(5),
            lost_after: Duration::from_secs(30),
            forget_after: Duration::from_secs(24 * 60 * 60),
            assume_complete: false,
            limits: Limits::default(),
        }
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            store: nimbus_store::Limits::default(),
            schemas: SchemaLimits::default(),
            // Two for each session, as while everybody comes back.
            connections: 100_000,
            sessions: 50_000,
            publishers: 10_000,
            message_bytes: 4 << 20,
            // Ten times the operations of the largest transaction.
            message_parts: 100_000,
            // Sixty-four requests of the largest size.
            incoming_bytes: 256 << 20,
            // A hundred pages of the largest size.
            outgoing_bytes: 128 << 20,
            frame_bytes: 256 << 10,
            request_kinds: 1_000,
            origins: 1_000,
            filter_terms: 1_000,
            agent_labels: 64,
            page_objects: 1_000,
            page_bytes: 1 << 20,
            open_lists: 64,
            agents: 100_000,
            exceptions: 10_000,
            statuses: 1_000,
            status_bytes: 16 << 10,
            // A thousand statuses of the largest size, nearly; our own agents report at most a megabyte of exceptions.
            report_bytes: 16 << 20,
            reports_bytes: 128 << 20,
            watches: 1_000,
            snapshot_rate: 256 << 20,
            snapshot_burst: 256 << 20,
            reservations: 100_000,
            group_bytes: 512 << 20,
            streams: 1_024,
        }
    }
}

impl Limits {
    /// The limits by the name that metrics and errors use.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let store = &self.store;
        [
            ("objects", store.objects),
            ("kinds", store.kinds),
            ("object_bytes", store.object_bytes),
            ("labels", store.labels),
            ("refs", store.refs),
            ("finalizers", store.finalizers),
            ("named_agents", store.named_agents),
            ("ops", store.steps),
            ("leases", store.leases),
            ("tombstones", store.tombstones),
            ("idle_filters", store.idle_filters),
            ("unsettled", store.unsettled),
            ("unsettled_bytes", store.unsettled_bytes),
            ("connections", self.connections),
            ("sessions", self.sessions),
            ("publishers", self.publishers),
            ("message_bytes", self.message_bytes),
            ("message_parts", self.message_parts),
            ("incoming_bytes", self.incoming_bytes),
            ("outgoing_bytes", self.outgoing_bytes),
            ("frame_bytes", self.frame_bytes),
            ("request_kinds", self.request_kinds),
            ("origins", self.origins),
            ("filter_terms", self.filter_terms),
            ("agent_labels", self.agent_labels),
            ("page_objects", self.page_objects),
            ("page_bytes", self.page_bytes),
            ("open_lists", self.open_lists),
            ("agents", self.agents),
            ("exceptions", self.exceptions),
            ("statuses", self.statuses),
            ("status_bytes", self.status_bytes),
            ("report_bytes", self.report_bytes),
            ("reports_bytes", self.reports_bytes),
            ("watches", self.watches),
            ("reservations", self.reservations),
            ("group_bytes", self.group_bytes),
            ("streams", self.streams as usize),
            ("schema_bytes", self.schemas.max_set_bytes),
            ("schemas_bytes", self.schemas.max_total_bytes),
            ("schema_files", self.schemas.max_files),
            ("schema_kinds", self.schemas.max_kinds),
        ]
        .into_iter()
        .map(|(name, limit)| (name, limit as u64))
        .chain([
            ("bytes", self.store.bytes),
            ("snapshot_rate", self.snapshot_rate),
            ("snapshot_burst", self.snapshot_burst),
        ])
        .collect()
    }
}
