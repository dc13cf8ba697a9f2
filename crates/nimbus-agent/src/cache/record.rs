//! The bytes of the file: rows, the header, and the checksums of both.

use std::{str, sync::Arc, time::SystemTime};

use bytes::Bytes;
use nimbus_client::Item;
use nimbus_core::{AgentId, Digest, Kind, LeafHasher, ObjectKey, Position};
use nimbus_wire::v1;
use prost::Message;
use prost_types::Timestamp;

use crate::cache::{boot::BootId, flaw::Flaw, image::Versions, ledger::Ledger};

/// The layout that this program writes, and the only one that it reads. Another number sets the file aside.
pub(crate) const FORMAT: u32 = 1;

/// A checksum stands before what it is of.
const CHECKSUM: usize = 16;

/// Separates the parts of a key. No name can have it, and it sorts before all that names can have, so rows have the
/// order of keys.
const SEPARATOR: char = '\0';

/// What is true of the whole file. Field 1 and the checksum in front stay as they are in every format.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(uint32, tag = "1")]
    pub(crate) format: u32,
    #[prost(string, tag = "2")]
    pub(crate) agent: String,
    /// Counts changes, so that a writer that lost sight of the file knows it again.
    #[prost(uint64, tag = "3")]
    pub(crate) sequence: u64,
    #[prost(message, optional, tag = "4")]
    position: Option<v1::Position>,
    #[prost(message, optional, tag = "5")]
    saved_at: Option<Timestamp>,
    #[prost(string, optional, tag = "6")]
    boot: Option<String>,
    /// How many rows there are, and the digest of them all.
    #[prost(uint64, tag = "7")]
    rows: u64,
    #[prost(bytes = "vec", tag = "8")]
    total: Vec<u8>,
}

/// All that is remembered of one object.
#[derive(Clone, PartialEq, Message)]
struct Row {
    /// Each version once.
    #[prost(message, repeated, tag = "1")]
    versions: Vec<Version>,
    /// Indices of `versions`.
    #[prost(uint32, optional, tag = "2")]
    desired: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    applied: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    started: Option<u32>,
    #[prost(string, optional, tag = "5")]
    applied_in: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Version {
    #[prost(message, optional, tag = "1")]
    object: Option<v1::Object>,
    #[prost(bytes = "bytes", tag = "2")]
    digest: Bytes,
}

/// The key of an object's row.
pub(crate) fn encode_key(key: &ObjectKey) -> Vec<u8> {
    format!("{}{SEPARATOR}{}{SEPARATOR}{}", key.kind(), key.namespace(), key.name()).into_bytes()
}

/// The object of a row's key.
pub(crate) fn decode_key(bytes: &[u8]) -> Result<ObjectKey, Flaw> {
    let parts = str::from_utf8(bytes).ok().and_then(|text| {
        let (kind, rest) = text.split_once(SEPARATOR)?;
        let (namespace, name) = rest.split_once(SEPARATOR)?;
        ObjectKey::new(Kind::new(kind).ok()?, namespace, name).ok()
    });
    parts.ok_or_else(|| Flaw::Content("a row has the key of no object".into()))
}

/// The row of an object, and its checksum.
pub(crate) fn encode_row(key: &ObjectKey, versions: &Versions) -> (Vec<u8>, Digest) {
    let mut distinct: Vec<Arc<Item>> = Vec::new();
    let mut index = |version: &Option<Arc<Item>>| -> Option<u32> {
        let item = version.as_ref()?;
        let known = distinct.iter().position(|other| Arc::ptr_eq(item, other) || item == other);
        let index = known.unwrap_or_else(|| {
            distinct.push(item.clone());
            distinct.len() - 1
        });
        Some(u32::try_from(index).expect("there are at most three versions"))
    };
    let (desired, applied, started) = (index(&versions.desired), index(&versions.applied), index(&versions.started));
    let applied_in = versions.applied_in.as_ref().map(|boot| boot.as_str().into());
    let versions = distinct.iter().map(|item| Version::from(&**item)).collect();
    let body = Row { versions, desired, applied, started, applied_in }.encode_to_vec();
    let checksum = row_checksum(key, &body);
    (seal(checksum, &body), checksum)
}

/// A row with this body.
pub(crate) fn seal_row(key: &ObjectKey, body: &[u8]) -> Vec<u8> {
    seal(row_checksum(key, body), body)
}

/// A header with this body.
pub(crate) fn seal_header(body: &[u8]) -> Vec<u8> {
    seal(header_checksum(body), body)
}

/// The versions of an object from its row, and the row's checksum.
pub(crate) fn decode_row(key: &ObjectKey, bytes: &[u8]) -> Result<(Versions, Digest), Flaw> {
    let damaged = |what: &str| Flaw::Content(format!("{key}: {what}"));
    let (checksum, body) = unseal(bytes).ok_or_else(|| damaged("the row is too short"))?;
    if checksum != row_checksum(key, body) {
        return Err(damaged("the row does not match its checksum"));
    }
    let row = Row::decode(body).map_err(|error| damaged(&error.to_string()))?;
    let items = row.versions.into_iter().map(Version::into_item).collect::<Result<Vec<_>, _>>()?;
    if items.iter().any(|item| item.key() != key) {
        return Err(damaged("the row holds another object"));
    }
    let get = |index: Option<u32>| -> Result<Option<Arc<Item>>, Flaw> {
        let Some(index) = index else { return Ok(None) };
        let item = usize::try_from(index).ok().and_then(|index| items.get(index));
        item.cloned().map(Some).ok_or_else(|| damaged("the row lacks a version"))
    };
    let versions = Versions {
        desired: get(row.desired)?,
        applied: get(row.applied)?,
        applied_in: row.applied_in.as_deref().and_then(BootId::new),
        started: get(row.started)?,
    };
    if versions.is_empty() { Err(damaged("the row is empty")) } else { Ok((versions, checksum)) }
}

fn row_checksum(key: &ObjectKey, body: &[u8]) -> Digest {
    let mut hasher = LeafHasher::new(key);
    hasher.part(body);
    hasher.finish()
}

fn header_checksum(body: &[u8]) -> Digest {
    let mut hasher = LeafHasher::extra();
    hasher.part(b"header");
    hasher.part(body);
    hasher.finish()
}

fn seal(checksum: Digest, body: &[u8]) -> Vec<u8> {
    [checksum.as_bytes(), body].concat()
}

/// The checksum and the body of a row, or of the header.
pub(crate) fn unseal(bytes: &[u8]) -> Option<(Digest, &[u8])> {
    let (checksum, body) = bytes.split_at_checked(CHECKSUM)?;
    Some((Digest::from_slice(checksum)?, body))
}

// === impl Header ===

impl Header {
    pub(crate) fn new(agent: &AgentId, sequence: u64, position: Option<Position>, ledger: &Ledger) -> Self {
        Self {
            format: FORMAT,
            agent: agent.as_str().into(),
            sequence,
            position: position.map(v1::Position::from),
            saved_at: None,
            boot: None,
            rows: ledger.len(),
            total: ledger.total().as_bytes().to_vec(),
        }
    }

    pub(crate) fn saved(self, at: SystemTime, boot: Option<&BootId>) -> Self {
        Self { saved_at: Some(at.into()), boot: boot.map(|boot| boot.as_str().into()), ..self }
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.position.as_ref().map(Position::from)
    }

    /// When and in which run of the machine it was written.
    pub(crate) fn when(&self) -> Option<(SystemTime, Option<BootId>)> {
        let at = self.saved_at.and_then(|at| SystemTime::try_from(at).ok())?;
        Some((at, self.boot.as_deref().and_then(BootId::new)))
    }

    /// Whether these are the rows that it was written with.
    pub(crate) fn matches(&self, ledger: &Ledger) -> bool {
        self.rows == ledger.len() && self.total == ledger.total().as_bytes()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        seal_header(&self.encode_to_vec())
    }

    /// Reads a header, which must be of this format and of this agent.
    pub(crate) fn from_bytes(bytes: &[u8], agent: &AgentId) -> Result<Self, Flaw> {
        let damaged = |what: &str| Flaw::Content(format!("the header {what}"));
        let (checksum, body) = unseal(bytes).ok_or_else(|| damaged("is too short"))?;
        if checksum != header_checksum(body) {
            return Err(damaged("does not match its checksum"));
        }
        let header = Self::decode(body).map_err(|error| damaged(&error.to_string()))?;
        if header.format != FORMAT {
            return Err(Flaw::Content(format!("the format is {}, this agent reads {FORMAT}", header.format)));
        }
        if header.agent != agent.as_str() {
            return Err(Flaw::Content(format!("it belongs to agent {:?}, this is {agent:?}", header.agent)));
        }
        Ok(header)
    }
}

// === impl Version ===

impl Version {
    fn into_item(self) -> Result<Arc<Item>, Flaw> {
        let digest = Digest::from_slice(&self.digest);
        let (Some(object), Some(digest)) = (self.object, digest) else {
            return Err(Flaw::Content("a version lacks its object or digest".into()));
        };
        Item::new(object, digest).map_err(|error| Flaw::Content(error.to_string()))
    }
}

impl From<&Item> for Version {
    fn from(item: &Item) -> Self {
        Self { object: Some(item.object.clone()), digest: Bytes::copy_from_slice(item.digest.as_bytes()) }
    }
}
