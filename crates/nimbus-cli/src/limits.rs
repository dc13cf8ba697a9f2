//! Flags for what the bus accepts.

use clap::Args;
use nimbus_bus::Limits;
use nimbus_store::MAX_OBJECT_BYTES;

/// Defines one flag for each limit, and what it sets.
macro_rules! limits {
    ($($flag:ident: $type:ty $(, $parser:ident)?, $help:literal => $($field:ident).+;)*) => {
        /// What the bus accepts; beyond it, callers are told which limit it was, and nothing is lost.
        #[derive(Debug, Args)]
        #[command(next_help_heading = "Limits")]
        pub(crate) struct LimitArguments {
            $(
                #[doc = $help]
                #[arg(long, value_name = "N", default_value_t = Limits::default().$($field).+ $(, value_parser = $parser)?)]
                $flag: $type,
            )*
        }

        impl LimitArguments {
            fn apply(&self, limits: &mut Limits) {
                $(limits.$($field).+ = self.$flag;)*
            }
        }
    };
}

limits! {
    max_objects: usize, "Objects in all" => store.objects;
    max_bytes: u64, "Bytes of all encoded objects" => store.bytes;
    max_kinds: usize, "Kinds" => store.kinds;
    max_object_bytes: usize, parse_object_bytes, "Bytes of one encoded object" => store.object_bytes;
    max_labels: usize, "Labels of one object" => store.labels;
    max_refs: usize, "References of one object" => store.refs;
    max_finalizers: usize, "Finalizers of one object" => store.finalizers;
    max_named_agents: usize, "Agents named by one object" => store.named_agents;
    max_ops: usize, "Operations in one transaction" => store.steps;
    max_leases: usize, "Leases that are held at the same time" => store.leases;
    max_tombstones: usize, "Ends of objects that are remembered, for those who come back" => store.tombstones;
    max_idle_filters: usize, "Objects kept up to date for filters that nobody is subscribed with" => store.idle_filters;
    max_unsettled: usize, "Transactions that wait for the disk" => store.unsettled;
    max_unsettled_bytes: usize, "Bytes of transactions that wait for the disk" => store.unsettled_bytes;
    max_connections: usize, "Connections at the same time" => connections;
    max_sessions: usize, "Subscriptions at the same time" => sessions;
    max_publishers: usize, "Publishers, by name" => publishers;
    max_message_bytes: usize, "Bytes of one request" => message_bytes;
    max_message_parts: usize, "Fields and elements of one request" => message_parts;
    max_incoming_bytes: usize, "Bytes of all requests that are not complete yet" => incoming_bytes;
    max_outgoing_bytes: usize, "Bytes of answers that nobody has read yet" => outgoing_bytes;
    max_frame_bytes: usize, parse_frame_bytes, "Bytes of one frame" => frame_bytes;
    max_request_kinds: usize, "Kinds named in one request" => request_kinds;
    max_origins: usize, "Origins named in one resume" => origins;
    max_filter_terms: usize, "Terms of one filter" => filter_terms;
    max_agent_labels: usize, "Labels of one agent" => agent_labels;
    max_page_objects: usize, "Objects on one page of a list" => page_objects;
    max_page_bytes: usize, "Bytes on one page of a list" => page_bytes;
    max_open_lists: usize, "Lists that are being paged through" => open_lists;
    max_agents: usize, "Agents that are remembered" => agents;
    max_exceptions: usize, "Exceptions that one agent may report" => exceptions;
    max_statuses: usize, "Rich statuses that one agent may report" => statuses;
    max_status_bytes: usize, "Bytes of one rich status" => status_bytes;
    max_report_bytes: usize, "Bytes of exceptions of one agent, and as many of its rich statuses" => report_bytes;
    max_reports_bytes: usize, "Bytes of exceptions of all agents, and as many of their rich statuses" => reports_bytes;
    max_watches: usize, "Calls at the same time that wait for agents, or watch them" => watches;
    max_reservations: usize, "Subscribers that were told when to come back" => reservations;
    max_group_bytes: usize, "Bytes that large groups under way may hold on to" => group_bytes;
    max_streams: u32, "Requests at the same time on one connection" => streams;
    max_schema_bytes: usize, "Bytes of one descriptor set" => schemas.max_set_bytes;
    max_schemas_bytes: usize, "Bytes of all registered descriptors" => schemas.max_total_bytes;
    max_schema_files: usize, "Files of descriptors" => schemas.max_files;
    max_schema_kinds: usize, "Registered kinds" => schemas.max_kinds;
    snapshot_rate: u64, "Bytes of snapshots per second, to all subscribers together" => snapshot_rate;
    snapshot_burst: u64, "Bytes of snapshots that may be sent at once" => snapshot_burst;
}

/// The largest frame that agents must be able to take.
const MAX_FRAME_BYTES: usize = 1 << 20;

/// Limits that do not fit together: the option that is wrong, and what is expected of it.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) option: &'static str,
    pub(crate) expected: String,
}

// === impl LimitArguments ===

impl LimitArguments {
    /// The limits, if they fit together.
    ///
    /// # Errors
    /// If one of them makes another pointless.
    pub(crate) fn to_limits(&self) -> Result<Limits, Misfit> {
        let mut limits = Limits::default();
        self.apply(&mut limits);
        if limits.message_bytes < limits.store.object_bytes {
            let least = limits.store.object_bytes;
            let expected = format!("expected at least {least}, as max-object-bytes is, or no object can be published");
            return Err(Misfit { option: "max-message-bytes", expected });
        }
        Ok(limits)
    }
}

fn parse_object_bytes(text: &str) -> Result<usize, String> {
    parse_between(text, 1, MAX_OBJECT_BYTES, ", so that an object fits into a frame")
}

fn parse_frame_bytes(text: &str) -> Result<usize, String> {
    parse_between(text, 1024, MAX_FRAME_BYTES, "")
}

fn parse_between(text: &str, least: usize, most: usize, why: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("expected a number between {least} and {most}{why}")),
    }
}
