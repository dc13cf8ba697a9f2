//! What the honest publish: small objects that say when, and large ones that are only there.

use nimbus_wire::v1::{self, op::Op, sync_request::Step};
use prost::Message as _;
use prost_types::Any;

/// The kind of objects that change all the time.
pub(crate) const BEAT: &str = "hostile.v1.Beat";

/// The kind of objects that make answers large.
pub(crate) const BULK: &str = "hostile.v1.Bulk";

/// Who publishes both.
pub(crate) const PUBLISHER: &str = "honest";

/// So many objects change.
const BEATS: u64 = 16;

/// So many are only there, each of this size: a page of them is a megabyte.
const BULKS: u64 = 512;
const BULK_BYTES: usize = 2 << 10;

#[derive(Clone, PartialEq, prost::Message)]
struct Spec {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(bytes = "vec", tag = "2")]
    padding: Vec<u8>,
}

/// The number of an object that changes.
pub(crate) fn number(object: &v1::Object) -> Option<u64> {
    let spec = object.spec.as_ref().filter(|_| object.kind == BEAT)?;
    Some(Spec::decode(&*spec.value).ok()?.number)
}

/// The request that publishes a number.
pub(crate) fn publish(number: u64) -> v1::ApplyRequest {
    let object = object(BEAT, number % BEATS, number, 0);
    let op = v1::Op { op: Some(Op::Upsert(object)), ..v1::Op::default() };
    v1::ApplyRequest { publisher: PUBLISHER.to_owned(), ops: vec![op], ..v1::ApplyRequest::default() }
}

/// All that there is at first.
pub(crate) fn sync() -> Vec<v1::SyncRequest> {
    let kinds = vec![BEAT.to_owned(), BULK.to_owned()];
    let begin = v1::SyncBegin { publisher: PUBLISHER.to_owned(), kinds, ..v1::SyncBegin::default() };
    let beats = (0..BEATS).map(|at| object(BEAT, at, 0, 0));
    let objects = beats.chain((0..BULKS).map(|at| object(BULK, at, at, BULK_BYTES))).collect();
    [Step::Begin(begin), Step::Items(v1::SyncItems { objects }), Step::End(v1::SyncEnd::default())]
        .map(|step| v1::SyncRequest { step: Some(step) })
        .into()
}

fn object(kind: &str, at: u64, number: u64, padding: usize) -> v1::Object {
    let spec = Spec { number, padding: vec![1; padding] };
    let spec = Any { type_url: format!("type.googleapis.com/{kind}"), value: spec.encode_to_vec() };
    v1::Object { kind: kind.to_owned(), name: format!("o-{at}"), spec: Some(spec), ..v1::Object::default() }
}
