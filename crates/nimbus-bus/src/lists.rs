//! Lists that are being paged through: each stays at the revision at which it began.

use std::{collections::VecDeque, sync::Arc};

use nimbus_core::{Kind, ObjectKey, ScopeHash};
use nimbus_store::{Collection, State};
use parking_lot::Mutex;
use tonic::Status;

use crate::fault;

/// States that pages refer to. The oldest ones are let go.
pub(crate) struct Lists {
    kept: Mutex<VecDeque<Arc<State>>>,
    max: usize,
}

/// Where a list goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageToken {
    epoch: u64,
    version: u64,
    scope: u64,
    pub(crate) after: ObjectKey,
}

// === impl Lists ===

impl Lists {
    pub(crate) fn new(max: usize) -> Self {
        Self { kept: Mutex::default(), max }
    }

    /// The state that a page is read from.
    pub(crate) fn state(&self, store: &Collection, token: Option<&PageToken>) -> Result<Arc<State>, Status> {
        let now = store.state();
        let Some(token) = token else { return Ok(now) };
        if token.epoch != now.epoch().0 {
            return Err(Status::aborted("page_token: the bus was restarted since (hint: list from the beginning)"));
        }
        if token.version == now.version() {
            return Ok(now);
        }
        let kept = self.kept.lock().iter().find(|state| state.version() == token.version).cloned();
        kept.ok_or_else(|| {
            Status::aborted("page_token: too many lists were begun since (hint: list from the beginning)")
        })
    }

    /// How many states are kept.
    pub(crate) fn open(&self) -> usize {
        self.kept.lock().len()
    }

    /// Keeps a state for the next page.
    pub(crate) fn keep(&self, state: &Arc<State>) {
        let mut kept = self.kept.lock();
        if kept.iter().any(|other| other.version() == state.version()) {
            return;
        }
        if kept.len() >= self.max {
            kept.pop_front();
        }
        kept.push_back(state.clone());
    }
}

// === impl PageToken ===

impl PageToken {
    pub(crate) fn new(state: &State, scope: ScopeHash, after: ObjectKey) -> Self {
        Self { epoch: state.epoch().0, version: state.version(), scope: scope.0, after }
    }

    /// Reads the token of the page before; empty is the first page.
    pub(crate) fn parse(text: &str, scope: ScopeHash) -> Result<Option<Self>, Status> {
        if text.is_empty() {
            return Ok(None);
        }
        let token = Self::read(text)
            .ok_or_else(|| fault::bad("page_token", "the next_page_token of the page before, unchanged"))?;
        if token.scope != scope.0 {
            return Err(fault::bad("page_token", "the same kinds, filter and agent as on the page before"));
        }
        Ok(Some(token))
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (epoch, version, scope) = (number()?, number()?, number()?);
        let mut key = parts.next()?.split('/');
        let (kind, namespace, name) = (key.next()?, key.next()?, key.next()?);
        let after = ObjectKey::new(Kind::new(kind).ok()?, namespace, name).ok()?;
        key.next().is_none().then_some(Self { epoch, version, scope, after })
    }
}

impl std::fmt::Display for PageToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { epoch, version, scope, after } = self;
        write!(f, "{epoch:x}.{version:x}.{scope:x}.{}/{}/{}", after.kind(), after.namespace(), after.name())
    }
}
