//! Samples of `bus.proto`.

use nimbus_wire::v1::{
    AgentEvent, Batch, Bookmark, Drain, Event, Exception, Filter, Frame, GetRequest, GetResponse, GroupRestarted,
    KindInfo, ListKindsRequest, ListKindsResponse, ListRequest, ListResponse, Mode, Notice, ObjectStatus, Origin,
    Phase, Position, PublisherAge, Removal, ReportRequest, ReportResponse, ReportWanted, Rescope, Resume, ScopeChanged,
    SnapshotBegin, SnapshotEnd, SubscribeRequest, Welcome, event, frame, notice,
};

use crate::{
    golden::Case,
    samples::{
        any, bytes, labels,
        object::{key, object},
        strings,
    },
};

pub(super) fn cases() -> Vec<Case> {
    [reads(), subscription(), frames(), notices(), reports()].into_iter().flatten().collect()
}

fn reads() -> Vec<Case> {
    vec![
        Case::whole(GetRequest { kind: "demo.v1.Policy".into(), namespace: "prod".into(), name: "web".into() }),
        Case::whole(GetResponse { object: Some(object()), epoch: 0x0102_0304_0506_0708, revision: 300 }),
        Case::whole(filter()),
        Case::whole(ListRequest {
            kinds: strings(["demo.v1.Policy", "demo.v1.Zone"]),
            filter: Some(filter()),
            page_size: 500,
            page_token: "next".into(),
            agent: "switch-1".into(),
            agent_labels: labels([("role", "edge"), ("zone", "a")]),
            require_complete: true,
        }),
        Case::whole(ListResponse {
            objects: vec![object()],
            epoch: 0x0102_0304_0506_0708,
            revision: 300,
            next_page_token: "next".into(),
            incomplete_kinds: strings(["demo.v1.Zone"]),
        }),
        Case::whole(ListKindsRequest {}),
        Case::whole(ListKindsResponse { kinds: vec![kind_info()] }),
        Case::whole(kind_info()),
    ]
}

fn subscription() -> Vec<Case> {
    vec![
        Case::whole(position()),
        Case::whole(origin()),
        Case::whole(SubscribeRequest {
            kinds: strings(["demo.v1.Policy", "demo.v1.Zone"]),
            filter: Some(filter()),
            agent: "switch-1".into(),
            agent_labels: labels([("role", "edge"), ("zone", "a")]),
            resume: Some(resume()),
            credit_bytes: 1 << 20,
            software: "switch-agent 1.2".into(),
            capabilities: strings(["zstd"]),
        }),
        Case::whole(resume()),
    ]
}

fn frames() -> Vec<Case> {
    let frame = |part, frame| Case::part(part, Frame { frame: Some(frame) });
    let modes = [Mode::Delta, Mode::Unchanged, Mode::Digest, Mode::Snapshot, Mode::Waiting];
    let modes = modes.map(|mode| Case::part(mode.as_str_name(), Welcome { mode: mode.into(), ..welcome() }));
    let mut cases = vec![
        frame("welcome", frame::Frame::Welcome(welcome())),
        frame("snapshot_begin", frame::Frame::SnapshotBegin(snapshot_begin())),
        frame("batch", frame::Frame::Batch(batch())),
        frame("snapshot_end", frame::Frame::SnapshotEnd(snapshot_end())),
        frame("bookmark", frame::Frame::Bookmark(bookmark())),
        frame("notice", frame::Frame::Notice(Notice { notice: Some(notice::Notice::Drain(drain())) })),
        Case::whole(snapshot_begin()),
        Case::whole(batch()),
        Case::part("put", put()),
        Case::part("delete", delete()),
        Case::whole(removal()),
        Case::whole(snapshot_end()),
        Case::whole(bookmark()),
        Case::whole(publisher_age()),
    ];
    cases.extend(modes);
    cases
}

fn notices() -> Vec<Case> {
    let notice = |part, notice| Case::part(part, Notice { notice: Some(notice) });
    vec![
        notice("drain", notice::Notice::Drain(drain())),
        notice("scope_changed", notice::Notice::ScopeChanged(scope_changed())),
        notice("report_wanted", notice::Notice::ReportWanted(ReportWanted {})),
        notice("group_restarted", notice::Notice::GroupRestarted(GroupRestarted {})),
        Case::whole(drain()),
        Case::whole(scope_changed()),
        Case::whole(ReportWanted {}),
        Case::whole(GroupRestarted {}),
    ]
}

fn reports() -> Vec<Case> {
    let phases = [Phase::Pending, Phase::Failed, Phase::Degraded];
    let phases = phases.map(|phase| Case::part(phase.as_str_name(), Exception { phase: phase.into(), ..exception() }));
    let mut cases = vec![
        Case::whole(report()),
        Case::part("scope_changes", ReportRequest { scope_changes: 2, ..report() }),
        Case::part("events", ReportRequest { events: vec![agent_event()], ..report() }),
        Case::part("leaving", ReportRequest { leaving: true, ..report() }),
        Case::whole(agent_event()),
        Case::whole(object_status()),
        Case::whole(rescope()),
        Case::whole(ReportResponse { sequence: 7, full_wanted: true, statuses_refused: 0 }),
        Case::part("statuses_refused", ReportResponse { sequence: 7, full_wanted: true, statuses_refused: 3 }),
        Case::part("attempts", Exception { attempts: 5, ..exception() }),
        Case::part("age_ms", Exception { age_ms: 1_500, ..exception() }),
        Case::part("retry_in_ms", Exception { retry_in_ms: 2_000, ..exception() }),
        Case::part("waits_for", Exception { waits_for: vec![key()], ..exception() }),
    ];
    cases.extend(phases);
    cases
}

fn report() -> ReportRequest {
    ReportRequest {
        session: 0x1112_1314_1516_1718,
        sequence: 7,
        received: 301,
        applied: 300,
        exceptions: vec![exception()],
        cleared: vec![key()],
        full: true,
        received_bytes: 65_536,
        rescope: Some(rescope()),
        statuses: vec![object_status()],
        scope_changes: 0,
        events: vec![],
        leaving: false,
    }
}

pub(super) fn agent_event() -> AgentEvent {
    AgentEvent {
        reason: "Drift".into(),
        message: "port 3 was changed by hand".into(),
        count: 4,
        first_ms: 60_000,
        last_ms: 1_500,
        object: Some(key()),
    }
}

pub(super) fn filter() -> Filter {
    Filter {
        namespaces: strings(["prod", "test"]),
        names: strings(["web", "api"]),
        selector: "tier in (web,api),!legacy".into(),
        fields: strings(["spec.zone=a"]),
    }
}

fn kind_info() -> KindInfo {
    KindInfo {
        kind: "demo.v1.Policy".into(),
        objects: 1000,
        registered: true,
        complete: true,
        publishers: vec![publisher_age()],
    }
}

fn position() -> Position {
    Position { epoch: 0x0102_0304_0506_0708, revision: 300, scope: 0x2122_2324_2526_2728 }
}

fn origin() -> Origin {
    Origin { manager: "policies".into(), kinds: strings(["demo.v1.Policy", "demo.v1.Zone"]) }
}

/// Shorter buckets than the contract asks for: it is the encoding that matters here.
fn resume() -> Resume {
    Resume { position: Some(position()), root: bytes(16), buckets: bytes(48), origins: vec![origin()] }
}

fn welcome() -> Welcome {
    Welcome {
        session: 0x1112_1314_1516_1718,
        position: Some(position()),
        mode: Mode::Digest.into(),
        reason: "another epoch".into(),
        incomplete_kinds: strings(["demo.v1.Zone"]),
        bookmark_interval_ms: 10_000,
        capabilities: strings(["zstd"]),
    }
}

fn snapshot_begin() -> SnapshotBegin {
    SnapshotBegin { buckets: bytes(32), objects: 1000, bytes: 512_000 }
}

fn batch() -> Batch {
    Batch { events: vec![put(), delete()], revision: 301 }
}

fn put() -> Event {
    Event { digest: bytes(16), change: Some(event::Change::Put(object())) }
}

fn delete() -> Event {
    Event { digest: bytes(0), change: Some(event::Change::Delete(removal())) }
}

fn removal() -> Removal {
    Removal {
        kind: "demo.v1.Policy".into(),
        namespace: "prod".into(),
        name: "old".into(),
        uid: "0195f3a0".into(),
        revision: 301,
        out_of_scope: true,
    }
}

fn snapshot_end() -> SnapshotEnd {
    SnapshotEnd { revision: 301, objects: 1000, digest: bytes(16) }
}

fn bookmark() -> Bookmark {
    Bookmark { revision: 302, digest: bytes(16), objects: 1000, publishers: vec![publisher_age()] }
}

fn publisher_age() -> PublisherAge {
    PublisherAge { publisher: "policies".into(), age_ms: 1500, synced: true }
}

fn drain() -> Drain {
    Drain { retry_after_ms: 2500, reason: "shutting down".into() }
}

fn scope_changed() -> ScopeChanged {
    ScopeChanged { scope: 0x2122_2324_2526_2728 }
}

pub(super) fn exception() -> Exception {
    Exception {
        key: Some(key()),
        generation: 3,
        phase: Phase::Failed.into(),
        code: "no_such_port".into(),
        message: "port 49 of 48".into(),
        retryable: true,
        attempts: 0,
        age_ms: 0,
        retry_in_ms: 0,
        waits_for: vec![],
    }
}

pub(super) fn object_status() -> ObjectStatus {
    ObjectStatus { key: Some(key()), generation: 3, status: Some(any("demo.v1.PolicyStatus")) }
}

fn rescope() -> Rescope {
    Rescope { kinds: strings(["demo.v1.Policy"]), filter: Some(filter()), agent_labels: labels([("zone", "b")]) }
}
