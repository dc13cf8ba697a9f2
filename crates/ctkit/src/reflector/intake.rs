//! What a watch says, taken in: the core of a reflector, without any I/O.

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey, Position};
use nimbus_store::{Record, Records};

use crate::{
    reflector::{difference::difference, status::WatchEpoch},
    snapshot::{KindCopy, Objects, Snapshot},
    source::{Change, Event},
};

/// What was read of one kind so far.
///
/// Positions never go back within an epoch of the source, and neither does any object: what is not after the position is
/// old news, also if it is about an object that ended since.
#[derive(Debug)]
pub(crate) struct Intake {
    kind: Kind,
    epoch: WatchEpoch,
    position: Option<Position>,
    copy: KindCopy,
    /// A list that has begun and not ended; it replaces everything at once.
    listing: Option<Records>,
    /// There is nothing that the list could replace: its parts are shown as they come.
    first: bool,
    /// The watch made no sense: it must begin with a list.
    distrusted: bool,
}

/// What has changed.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) what: What,
    /// Everything as it is now.
    pub(crate) copy: KindCopy,
}

/// What has changed, and how it became known.
#[derive(Debug)]
pub(crate) enum What {
    /// A part of the first list has come. Some of it may be there in place of an earlier part.
    Part { records: Vec<Arc<Record>>, replaces: bool },
    /// These objects are different by this list, or else by changes, up to here.
    Keys { keys: Vec<ObjectKey>, listed: Option<WatchEpoch>, position: Position },
}

/// Why a watch cannot be believed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// The source fell back, as a lagging replica does.
    #[error("the list is older than what was seen before (hint: does another replica answer?)")]
    Stale,
    /// Changes came before a list, within one, or from another epoch.
    #[error("changes that follow no list")]
    OutOfTurn,
}

// === impl Intake ===

impl Intake {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            epoch: WatchEpoch::ZERO,
            position: None,
            copy: KindCopy::default(),
            listing: None,
            first: true,
            distrusted: false,
        }
    }

    /// A new watch begins. Says from where: what is left of a list that broke off is forgotten.
    pub(crate) fn begin(&mut self) -> Option<Position> {
        self.listing = None;
        // What was shown of a list that broke off stays, until there is a whole one.
        self.first = self.position.is_none() && self.copy.objects.len() == 0;
        self.position.filter(|_| !std::mem::take(&mut self.distrusted))
    }

    /// Takes in what a watch says.
    pub(crate) fn take(&mut self, event: Event) -> Result<Option<News>, Broken> {
        match event {
            Event::Listing(records) => {
                let listing = self.listing.get_or_insert_default();
                let mut replaces = false;
                for record in &records {
                    replaces |= listing.insert(record.clone()).is_some();
                }
                if !self.first || records.is_empty() {
                    return Ok(None);
                }
                self.copy.objects = Objects::Listed(listing.clone());
                Ok(Some(News { what: What::Part { records, replaces }, copy: self.copy.clone() }))
            }
            Event::Listed(position) => self.sweep(position).map(Some),
            Event::Changes(changes, position) => self.change(changes, position),
        }
    }

    /// Looks at a source that can be read directly, after its watch said something. What it said need not be kept.
    ///
    /// The next look tells what has changed since exactly this one: nobody may ever see more than what was looked at
    /// here, else the end of an object that was seen too early would go unnoticed.
    pub(crate) fn look(&mut self, event: &Event, state: &Snapshot) -> Option<News> {
        let (Event::Listed(said) | Event::Changes(_, said)) = event else { return None };
        let copy = state.of_kind(&self.kind);
        let position = Position { epoch: state.epoch().unwrap_or(said.epoch), revision: copy.revision, ..*said };
        let before = self.position.filter(|before| before.epoch == position.epoch);
        match before.and_then(|before| state.changes(&self.kind, before.revision)) {
            Some(keys) => Some(self.arrive(keys, None, copy, position)),
            None => Some(self.replace(copy, position)),
        }
    }

    /// Replaces everything by the list.
    fn sweep(&mut self, position: Position) -> Result<News, Broken> {
        let objects = Objects::Listed(self.listing.take().unwrap_or_default());
        let is_older = |before: Position| before.epoch == position.epoch && position.revision < before.revision;
        if self.position.is_some_and(is_older) {
            return Err(Broken::Stale);
        }
        Ok(self.replace(KindCopy { objects, revision: position.revision }, position))
    }

    fn replace(&mut self, copy: KindCopy, position: Position) -> News {
        let comparable = self.position.is_some_and(|before| before.epoch == position.epoch);
        let same = |old: &Record, new: &Record| match comparable {
            true => old.has_life_of(new) && old.revision() == new.revision(),
            // In another epoch, the same object has another revision.
            false => old.leaf(true) == new.leaf(true),
        };
        let keys = difference(self.copy.objects.iter(), copy.objects.iter(), same);
        self.epoch = self.epoch.next();
        self.arrive(keys, Some(self.epoch), copy, position)
    }

    fn change(&mut self, changes: Vec<Change>, position: Position) -> Result<Option<News>, Broken> {
        let follows = |before: &Position| before.epoch == position.epoch && self.listing.is_none();
        let Some(before) = self.position.filter(follows) else {
            self.distrusted = true;
            return Err(Broken::OutOfTurn);
        };
        if position.revision < before.revision {
            return Ok(None);
        }
        let mut copy = self.copy.clone();
        copy.revision = position.revision;
        let fresh = changes.into_iter().filter(|change| change.revision() > before.revision);
        let keys = fresh.filter_map(|change| copy.apply(change)).collect();
        Ok(Some(self.arrive(keys, None, copy, position)))
    }

    fn arrive(&mut self, keys: Vec<ObjectKey>, listed: Option<WatchEpoch>, copy: KindCopy, position: Position) -> News {
        self.first = false;
        self.position = Some(position);
        self.copy = copy.clone();
        News { what: What::Keys { keys, listed, position }, copy }
    }
}

#[cfg(test)]
mod tests;
