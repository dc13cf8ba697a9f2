//! Changes of objects, as they come down from a bus: what was added, what has changed, what is gone.
//!
//! No I/O: frames go in, and what there is to say comes out. The copy that a [`Mirror`] keeps proves that nothing is missed
//! and nothing is said twice, whatever happens to the connection.

mod watched;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use nimbus_client::{Change, Effect, Mirror, Nonsense};
use nimbus_core::{ObjectKey, Revision};
use nimbus_wire::v1::{self, Mode, event::Change as WireChange, frame::Frame};

use self::watched::Watched;

/// What happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    Added(Arc<v1::Object>),
    Changed {
        object: Arc<v1::Object>,
        /// The generation that it had before.
        before: u64,
    },
    Removed {
        key: v1::Key,
        revision: u64,
        /// It still exists, but is no longer among those that are watched.
        out_of_scope: bool,
    },
}

/// What follows from a frame.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct News {
    /// A remark for people, which comes first.
    pub(crate) remark: Option<String>,
    pub(crate) events: Vec<Event>,
    /// How often the bus shows that it lives, if it says so.
    pub(crate) interval: Option<Duration>,
    /// Everything is as the bus has it.
    pub(crate) exact: bool,
    /// What is held is not what the bus has: subscribe again.
    pub(crate) restart: bool,
}

/// Follows the objects that somebody watches.
#[derive(Debug)]
pub(crate) struct Follower {
    mirror: Mirror<Watched>,
    /// The uid and the generation of everything that is there.
    lives: HashMap<ObjectKey, (Arc<str>, u64)>,
    /// Of removals that are not made yet: the revision, and whether the object lives on.
    removals: BTreeMap<ObjectKey, (u64, bool)>,
    /// What there was up to this revision is no news, until everything has come.
    skip: Option<Revision>,
    /// What has happened since the connection was lost, if it was; said when everything has come.
    away: Option<Away>,
}

#[derive(Debug, Default)]
struct Away {
    events: Vec<Event>,
    /// How the bus has answered.
    mode: Option<Mode>,
}

// === impl Follower ===

impl Follower {
    /// Begins with all there is; if `skip` is set, with what comes after that revision.
    pub(crate) fn new(skip: Option<u64>) -> Self {
        Self {
            mirror: Mirror::default(),
            lives: HashMap::new(),
            removals: BTreeMap::new(),
            skip: skip.map(Revision),
            away: None,
        }
    }

    /// What to offer when subscribing.
    pub(crate) fn resume(&self) -> Option<v1::Resume> {
        self.mirror.resume()
    }

    /// The connection is gone. Says whether it had been there.
    pub(crate) fn disconnect(&mut self) -> bool {
        self.mirror.disconnect();
        self.removals.clear();
        let first = self.away.is_none();
        self.away.get_or_insert_default();
        first
    }

    /// Takes a frame.
    pub(crate) fn take(&mut self, frame: v1::Frame) -> Result<News, Nonsense> {
        self.note_removals(&frame);
        let mut news = News::default();
        match self.mirror.take(frame)? {
            Effect::Welcome { mode, reason, bookmark_interval, .. } => {
                news.interval = Some(bookmark_interval);
                if let Some(away) = &mut self.away {
                    away.mode = Some(mode);
                }
                if mode == Mode::Waiting {
                    news.remark = Some(format!("connected; waiting for publishers to refill the bus: {reason}"));
                }
            }
            Effect::Changes { changes, position } => {
                self.perform(changes, position.map(|position| position.revision), &mut news);
            }
            Effect::Exact { position, .. } => self.arrive(position.revision, &mut news),
            Effect::Mismatch { changes, mismatch } => {
                tracing::debug!(%mismatch, "comparing everything");
                self.perform(changes, None, &mut news);
                news.restart = true;
            }
            Effect::ScopeChanged | Effect::ReportWanted | Effect::Drain { .. } | Effect::Alive => {}
        }
        Ok(news)
    }

    fn perform(&mut self, changes: Vec<Change<Watched>>, revision: Option<Revision>, news: &mut News) {
        let at = revision.unwrap_or_else(|| self.mirror.reached()).0;
        let events: Vec<Event> = changes.into_iter().flat_map(|change| self.event(change, at)).collect();
        match &mut self.away {
            Some(away) => away.events.extend(events),
            None => news.events.extend(events),
        }
        if let Some(revision) = revision {
            self.arrive(revision, news);
        }
    }

    /// Everything has come.
    fn arrive(&mut self, revision: Revision, news: &mut News) {
        news.exact = true;
        self.skip = None;
        self.removals.clear();
        let Some(Away { events, mode }) = self.away.take() else { return };
        let how = match mode {
            Some(Mode::Delta | Mode::Unchanged) | None => "resumed",
            Some(_) => "resynchronised",
        };
        let missed = match events.len() {
            0 => "nothing was missed".to_owned(),
            1 => "1 change while away".to_owned(),
            many => format!("{many} changes while away"),
        };
        news.remark = Some(format!("{how} at revision {revision}: {missed}"));
        news.events = events;
    }

    /// A change, as people see it: another life of a name is the end of one object and the beginning of another.
    fn event(&mut self, change: Change<Watched>, at: u64) -> Vec<Event> {
        let removal = |removals: &mut BTreeMap<ObjectKey, (u64, bool)>, key: &ObjectKey| {
            let (revision, out_of_scope) = removals.remove(key).unwrap_or((at, false));
            Event::Removed { key: key.to_wire(), revision, out_of_scope }
        };
        match change {
            Change::Delete(key) => {
                self.lives.remove(&key);
                vec![removal(&mut self.removals, &key)]
            }
            Change::Put(watched) => {
                let Some(object) = watched.object() else { return Vec::new() };
                let key = watched.key();
                let life = (Arc::from(object.uid.as_str()), object.generation);
                let is_news = self.skip.is_none_or(|skip| object.revision > skip.0);
                match self.lives.insert(key.clone(), life) {
                    None if is_news => vec![Event::Added(object)],
                    None => Vec::new(),
                    Some((uid, before)) if *uid == *object.uid => vec![Event::Changed { object, before }],
                    Some(_) => {
                        let end = Event::Removed { key: key.to_wire(), revision: object.revision, out_of_scope: false };
                        vec![end, Event::Added(object)]
                    }
                }
            }
        }
    }

    /// Remembers what a mirror has no use for.
    fn note_removals(&mut self, frame: &v1::Frame) {
        let Some(Frame::Batch(batch)) = &frame.frame else { return };
        for event in &batch.events {
            let Some(WireChange::Delete(removal)) = &event.change else { continue };
            let v1::Removal { kind, namespace, name, revision, out_of_scope, .. } = removal;
            // One that makes no sense is refused by the mirror.
            if let Some(key) = watched::key(kind, namespace, name) {
                self.removals.insert(key, (*revision, *out_of_scope));
            }
        }
    }
}
