//! Who is calling: the one place from which all services take it.

use nimbus_core::{AgentId, PublisherId};
use tonic::{Status, metadata::MetadataMap};

use crate::fault;

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name, if the caller has one.
    pub name: Option<String>,
    /// What the name rests on.
    pub proof: Proof,
}

/// What an identity rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// The caller says so.
    Unproven,
}

/// The metadata in which a caller may say who it is.
const HEADER: &str = "nimbus-identity";

/// Who publishes without a name.
const ANONYMOUS: &str = "anonymous";

// === impl Identity ===

impl Identity {
    /// Takes the identity of a call.
    pub fn of(metadata: &MetadataMap) -> Self {
        let name = metadata.get(HEADER).and_then(|value| value.to_str().ok()).filter(|name| !name.is_empty());
        Self { name: name.map(ToOwned::to_owned), proof: Proof::Unproven }
    }

    /// The publisher that the caller is, or says to be.
    pub(crate) fn publisher(&self, claimed: &str) -> Result<PublisherId, Status> {
        let name = match (claimed, &self.name) {
            ("", None) => ANONYMOUS,
            ("", Some(name)) => name,
            (claimed, _) => {
                self.check(claimed, "publish")?;
                claimed
            }
        };
        PublisherId::new(name).map_err(|error| fault::field("publisher", &error))
    }

    /// The agent that the caller is, or says to be; `None` for an observer.
    pub(crate) fn agent(&self, claimed: &str) -> Result<Option<AgentId>, Status> {
        if claimed.is_empty() {
            return Ok(None);
        }
        self.check(claimed, "speak")?;
        AgentId::new(claimed).map(Some).map_err(|error| fault::field("agent", &error))
    }

    /// The holder of leases that the caller is, or says to be.
    pub(crate) fn holder<'a>(&'a self, claimed: &'a str) -> Result<&'a str, Status> {
        match (claimed, &self.name) {
            ("", None) => {
                Err(fault::bad("holder", "a name of this instance: two that share one would both hold the lease"))
            }
            ("", Some(name)) => Ok(name),
            (claimed, _) => self.check(claimed, "hold leases").map(|()| claimed),
        }
    }

    /// Nobody speaks for another.
    fn check(&self, claimed: &str, verb: &str) -> Result<(), Status> {
        match &self.name {
            Some(name) if name != claimed => {
                Err(Status::permission_denied(format!("{name:?} may not {verb} as {claimed:?}")))
            }
            _ => Ok(()),
        }
    }
}
