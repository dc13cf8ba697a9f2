//! The rows of kinds.

use imbl::OrdMap;
use nimbus_core::PublisherId;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct KindRow {
    #[prost(message, repeated, tag = "1")]
    publishers: Vec<PublisherRow>,
}

#[derive(Clone, PartialEq, Message)]
struct PublisherRow {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "2")]
    synced: bool,
}

/// The row of a kind: the publishers that announced a sync of it, and whether they finished one.
pub(crate) fn encode_kind(publishers: &OrdMap<PublisherId, bool>) -> Vec<u8> {
    let row = |(name, synced): (&PublisherId, &bool)| PublisherRow { name: name.to_string(), synced: *synced };
    KindRow { publishers: publishers.iter().map(row).collect() }.encode_to_vec()
}

/// The publishers of a kind from its row.
pub(crate) fn decode_kind(body: &[u8]) -> Result<OrdMap<PublisherId, bool>, String> {
    let row = KindRow::decode(body).map_err(|error| error.to_string())?;
    let publisher = |row: PublisherRow| {
        let name = PublisherId::new(&row.name).map_err(|error| error.to_string())?;
        Ok((name, row.synced))
    };
    row.publishers.into_iter().map(publisher).collect()
}
