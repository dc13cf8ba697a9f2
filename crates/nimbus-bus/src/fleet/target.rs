//! What is to be propagated.

use std::sync::Arc;

use nimbus_core::{Generation, ObjectKey, Revision};
use nimbus_store::{Record, State};
use nimbus_wire::v1;
use tonic::Status;

use crate::{fault, fleet::exception::required_key};

/// What is to be propagated, as it is asked for.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Object(ObjectKey),
    Revision(Revision),
}

/// The same in one state of the collection.
#[derive(Debug)]
pub(crate) enum Aim {
    /// An object in its newest version.
    Object(Arc<Record>),
    /// The end of an object.
    End(ObjectKey, Revision),
    /// A transaction.
    Revision(Revision),
}

// === impl Target ===

impl Target {
    /// Checks and takes a target.
    pub(crate) fn parse(wire: Option<v1::Target>) -> Result<Self, Status> {
        match wire.and_then(|target| target.target) {
            None => Err(fault::bad("target", "one of object or revision must be set")),
            Some(v1::target::Target::Object(key)) => required_key(Some(&key), "target.object").map(Self::Object),
            Some(v1::target::Target::Revision(0)) => {
                Err(fault::bad("target.revision", "the revision of a transaction, 1 or more"))
            }
            Some(v1::target::Target::Revision(revision)) => Ok(Self::Revision(Revision(revision))),
        }
    }

    /// The target in that state.
    pub(crate) fn aim(&self, state: &State) -> Result<Aim, Status> {
        match self {
            Self::Revision(revision) if *revision > state.head() => {
                let head = state.head();
                Err(fault::bad("target.revision", format!("at most {head}, the newest revision, found {revision}")))
            }
            Self::Revision(revision) => Ok(Aim::Revision(*revision)),
            Self::Object(key) => match (state.get(key), state.end_of(key)) {
                (Some(record), _) => Ok(Aim::Object(record.clone())),
                (None, Some(end)) => Ok(Aim::End(key.clone(), end)),
                (None, None) => Err(Status::not_found(format!(
                    "{key} does not exist at revision {}, and no end of it is remembered (hint: was it published \
                     under another name or namespace?)",
                    state.head()
                ))),
            },
        }
    }
}

// === impl Aim ===

impl Aim {
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Object(record) => record.revision(),
            Self::End(_, revision) | Self::Revision(revision) => *revision,
        }
    }

    /// Of the object; 0 for transactions and ends.
    pub(crate) fn generation(&self) -> Generation {
        match self {
            Self::Object(record) => record.generation(),
            Self::End(..) | Self::Revision(_) => Generation(0),
        }
    }
}
