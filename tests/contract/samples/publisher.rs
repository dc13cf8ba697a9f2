//! Samples of `publisher.proto`.

use nimbus_wire::v1::{
    ApplyRequest, ApplyResponse, FinalizersWrite, Op, Outcome, Precondition, RegisterKindsRequest,
    RegisterKindsResponse, Result, StatusWrite, SyncBegin, SyncEnd, SyncItems, SyncKeep, SyncRequest, SyncResponse, op,
    sync_request,
};

use crate::{
    golden::Case,
    samples::{
        any, bytes,
        lease::lease_token,
        object::{key, object},
        strings,
    },
};

pub(super) fn cases() -> Vec<Case> {
    [transactions(), syncs(), kinds()].into_iter().flatten().collect()
}

fn transactions() -> Vec<Case> {
    let results =
        [Result::Created, Result::Updated, Result::Unchanged, Result::Deleted, Result::Absent, Result::Deleting];
    let results =
        results.map(|result| Case::part(result.as_str_name(), Outcome { result: result.into(), ..outcome() }));
    let mut cases = vec![
        Case::whole(ApplyRequest {
            publisher: "policies".into(),
            fence: 5,
            ops: vec![op(op::Op::Upsert(object())), op(op::Op::Delete(key()))],
            dry_run: true,
            leases: Vec::new(),
        }),
        Case::part("leases", ApplyRequest { leases: vec![lease_token()], ..ApplyRequest::default() }),
        Case::part("upsert", op(op::Op::Upsert(object()))),
        Case::part("delete", op(op::Op::Delete(key()))),
        Case::part("status", op(op::Op::Status(status_write()))),
        Case::part("finalizers", op(op::Op::Finalizers(finalizers_write()))),
        Case::whole(finalizers_write()),
        Case::whole(status_write()),
        Case::whole(precondition()),
        // Zero is a number that one can ask for, and not the same as not asking.
        Case::part("zeros", Precondition { absent: false, uid: String::new(), revision: Some(0), generation: Some(0) }),
        Case::whole(ApplyResponse { epoch: 0x0102_0304_0506_0708, revision: 301, outcomes: vec![outcome()] }),
    ];
    cases.extend(results);
    cases
}

fn syncs() -> Vec<Case> {
    let step = |part, step| Case::part(part, SyncRequest { step: Some(step) });
    vec![
        step("begin", sync_request::Step::Begin(sync_begin())),
        step("items", sync_request::Step::Items(sync_items())),
        step("end", sync_request::Step::End(SyncEnd {})),
        step("keep", sync_request::Step::Keep(sync_keep())),
        Case::whole(sync_begin()),
        Case::part("leases", SyncBegin { leases: vec![lease_token()], ..sync_begin() }),
        Case::whole(sync_items()),
        Case::whole(SyncEnd {}),
        Case::whole(sync_keep()),
        Case::whole(SyncResponse {
            epoch: 0x0102_0304_0506_0708,
            revision: 301,
            created: 1,
            updated: 2,
            unchanged: 997,
            deleted: 3,
        }),
    ]
}

fn kinds() -> Vec<Case> {
    vec![
        Case::whole(RegisterKindsRequest { descriptor_set: bytes(40), kinds: strings(["demo.v1.Policy"]) }),
        Case::whole(RegisterKindsResponse { kinds: strings(["demo.v1.Policy"]) }),
    ]
}

fn op(op: op::Op) -> Op {
    Op { precondition: Some(precondition()), take_over: true, op: Some(op) }
}

fn status_write() -> StatusWrite {
    StatusWrite { key: Some(key()), status: Some(any("demo.v1.PolicyStatus")), observed_generation: 2 }
}

fn finalizers_write() -> FinalizersWrite {
    FinalizersWrite { key: Some(key()), add: strings(["dns"]), remove: strings(["firewall"]) }
}

/// No object passes both `absent` and the rest; it is the encoding that matters here.
fn precondition() -> Precondition {
    Precondition { absent: true, uid: "0195f3a2".into(), revision: Some(300), generation: Some(3) }
}

fn outcome() -> Outcome {
    Outcome { result: Result::Created.into(), uid: "0195f3a2".into(), generation: 3, revision: 301 }
}

fn sync_begin() -> SyncBegin {
    SyncBegin { publisher: "policies".into(), fence: 5, kinds: strings(["demo.v1.Policy"]), leases: vec![] }
}

fn sync_keep() -> SyncKeep {
    SyncKeep { keys: vec![key()] }
}

fn sync_items() -> SyncItems {
    SyncItems { objects: vec![object()] }
}
