//! The rows of ends of objects.

use std::sync::Arc;

use nimbus_core::{AgentId, ObjectKey, Reference, Revision, Selector, Uid};
use nimbus_wire::v1;
use prost::{Message, Oneof};

use crate::{
    durable::row::{decode_key, encode_key},
    lane::Address,
    record::{Grave, Slot},
    unsaved::Graves,
};

/// The end of an object, and the lanes in which it left a tombstone.
#[derive(Clone, PartialEq, Message)]
struct TombstoneRow {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(message, repeated, tag = "3")]
    refs: Vec<v1::Reference>,
    #[prost(bool, tag = "4")]
    out_of_scope: bool,
    #[prost(message, repeated, tag = "5")]
    lanes: Vec<LaneRow>,
}

#[derive(Clone, PartialEq, Message)]
struct LaneRow {
    #[prost(uint64, tag = "1")]
    since: u64,
    #[prost(oneof = "To", tags = "2, 3, 4, 5")]
    to: Option<To>,
}

#[derive(Clone, PartialEq, Oneof)]
enum To {
    #[prost(bool, tag = "2")]
    Observers(bool),
    #[prost(bool, tag = "3")]
    Everyone(bool),
    #[prost(string, tag = "4")]
    Selector(String),
    #[prost(string, tag = "5")]
    Agent(String),
}

/// The row of an end; `None` if it left no tombstones.
pub(crate) fn encode_tombstone(graves: &[(Address, Arc<Grave>)]) -> Option<Vec<u8>> {
    let (_, Grave { key, uid, refs, out_of_scope, .. }) = graves.first().map(|(address, grave)| (address, &**grave))?;
    let row = TombstoneRow {
        key: encode_key(key),
        uid: uid.to_string(),
        refs: refs.iter().map(Reference::to_wire).collect(),
        out_of_scope: *out_of_scope,
        lanes: graves.iter().map(|(address, grave)| LaneRow::new(address, grave.since)).collect(),
    };
    Some(row.encode_to_vec())
}

/// The object that ended at `slot`, and its tombstones.
pub(crate) fn decode_tombstone(slot: Slot, body: &[u8]) -> Result<(ObjectKey, Graves), String> {
    let row = TombstoneRow::decode(body).map_err(|error| error.to_string())?;
    let key = decode_key(&row.key)?;
    let uid = Uid::new(&row.uid).map_err(|error| error.to_string())?;
    let refs: Arc<[Reference]> = row
        .refs
        .iter()
        .map(Reference::try_from)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let mut graves = Vec::with_capacity(row.lanes.len());
    for lane in row.lanes {
        let since = Revision(lane.since);
        let (key, uid, refs, out_of_scope) = (key.clone(), uid.clone(), refs.clone(), row.out_of_scope);
        graves.push((lane.address()?, Arc::new(Grave { key, uid, slot, since, refs, out_of_scope })));
    }
    Ok((key, graves))
}

// === impl LaneRow ===

impl LaneRow {
    fn new(address: &Address, since: Revision) -> Self {
        let to = match address {
            Address::Observers => To::Observers(true),
            Address::Everyone => To::Everyone(true),
            Address::Selector(selector) => To::Selector(selector.to_string()),
            Address::Agent(agent) => To::Agent(agent.to_string()),
        };
        Self { since: since.0, to: Some(to) }
    }

    fn address(self) -> Result<Address, String> {
        match self.to.ok_or("a lane has no address")? {
            To::Observers(_) => Ok(Address::Observers),
            To::Everyone(_) => Ok(Address::Everyone),
            To::Selector(text) => Selector::parse(&text).map(Address::Selector).map_err(|error| error.to_string()),
            To::Agent(id) => AgentId::new(&id).map(Address::Agent).map_err(|error| error.to_string()),
        }
    }
}
