//! The rows of objects.

use std::sync::Arc;

use bytes::Bytes;
use nimbus_core::{AgentId, Audience, ObjectKey, Revision};
use prost::Message;

use crate::{
    record::{Content, Record, Slot},
    view::{Entry, Seat, Seats},
};

/// An object and its places in the lanes. What an object is made of is known only to its own encoding, in which its
/// revision is, too.
#[derive(Clone, PartialEq, Message)]
struct ObjectRow {
    #[prost(bytes = "bytes", tag = "1")]
    object: Bytes,
    #[prost(uint32, tag = "2")]
    seq: u32,
    #[prost(uint64, tag = "3")]
    since: u64,
    /// Since when readers of the one lane for its audience may hold it; unset if the audience is named agents.
    #[prost(uint64, optional, tag = "4")]
    shared: Option<u64>,
    #[prost(message, repeated, tag = "5")]
    seats: Vec<SeatRow>,
}

#[derive(Clone, PartialEq, Message)]
struct SeatRow {
    #[prost(string, tag = "1")]
    agent: String,
    #[prost(uint64, tag = "2")]
    revision: u64,
    #[prost(uint32, tag = "3")]
    seq: u32,
    #[prost(uint64, tag = "4")]
    since: u64,
}

/// The row of an object.
pub(crate) fn encode_object(entry: &Entry) -> Vec<u8> {
    let (shared, seats) = match entry.seats() {
        Seats::Shared(since) => (Some(since.0), Vec::new()),
        Seats::Named(seats) => (None, seats.iter().map(SeatRow::from).collect()),
    };
    let object = entry.record.encoded(true).into();
    let seq = entry.record.slot().seq;
    ObjectRow { object, seq, since: entry.since.0, shared, seats }.encode_to_vec()
}

/// The object of a row. It must have that name, and be encoded as this version would encode it: else there is something
/// in it that would be lost.
pub(crate) fn decode_object(key: &ObjectKey, body: &[u8]) -> Result<Entry, String> {
    let row = ObjectRow::decode(Bytes::copy_from_slice(body)).map_err(|error| error.to_string())?;
    let (content, revision) = Content::decode(&row.object)?;
    if content.key != *key {
        return Err(format!("the object in it is {}", content.key));
    }
    let seats = match (&content.audience, row.shared) {
        (Audience::Agents(ids), None) => {
            let seats = row.seats.into_iter().map(Seat::try_from).collect::<Result<Arc<[Seat]>, _>>()?;
            if !seats.iter().map(|seat| &seat.agent).eq(ids.iter()) {
                return Err("its places are not those of its audience".into());
            }
            Seats::Named(seats)
        }
        (Audience::Everyone | Audience::Selector(_), Some(since)) => Seats::Shared(Revision(since)),
        _ => return Err("its places are not those of its audience".into()),
    };
    let record = Record::kept(&content, Slot { revision, seq: row.seq });
    if record.encoded(true) != row.object {
        return Err("there is something in it that this version does not know".into());
    }
    Ok(Entry::new(Arc::new(record), Revision(row.since), seats))
}

// === impl SeatRow ===

impl From<&Seat> for SeatRow {
    fn from(seat: &Seat) -> Self {
        let Slot { revision, seq } = seat.slot;
        Self { agent: seat.agent.to_string(), revision: revision.0, seq, since: seat.since.0 }
    }
}

impl TryFrom<SeatRow> for Seat {
    type Error = String;

    fn try_from(row: SeatRow) -> Result<Self, String> {
        let agent = AgentId::new(&row.agent).map_err(|error| error.to_string())?;
        let slot = Slot { revision: Revision(row.revision), seq: row.seq };
        Ok(Self { agent, slot, since: Revision(row.since) })
    }
}
