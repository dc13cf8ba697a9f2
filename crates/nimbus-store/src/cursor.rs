//! A cursor: one reader's position, and the frames that take it forward.
//!
//! The same read is the snapshot, the resume, the live tail and the catch-up of a slow reader. Between two groups the
//! cursor is a position and nothing else; within a group it shares the group with whoever else reads it.

mod difference;
mod mark;
mod piece;
mod reading;
mod traffic;

use std::{ops::Range, sync::Arc};

use nimbus_core::{
    Buckets, Digest, Revision,
    planted::{self, Bug},
};

use self::{
    difference::difference,
    reading::{Reading, View},
};
pub use self::{mark::Mark, piece::Piece, traffic::Traffic};
use crate::{
    collection::Collection,
    feed::Sight,
    frame,
    group::{Contents, Group, Span},
    interest::Signal,
    scope::{Origin, Scope},
};

/// One reader's position in a collection.
#[derive(Debug)]
pub struct Cursor {
    store: Collection,
    signal: Signal,
    /// What must have been synced again before a snapshot may end.
    origins: Vec<Origin>,
    reading: Reading,
    next: Option<Reading>,
    /// The last change that was read.
    at: Revision,
    /// Nothing else changed up to here.
    seen: Revision,
    /// What the reader holds, if it is known; compared when the tombstones no longer reach back to it.
    held: Option<Digest>,
    /// A snapshot that has begun and not ended.
    snapshot: Option<Snapshot>,
    sending: Option<Sending>,
    /// Changes of its feed up to where it is, if that is known.
    changes: Option<u64>,
    traffic: Traffic,
}

#[derive(Debug)]
struct Snapshot {
    /// Everything in it was sent once; what follows are changes to it.
    passed: bool,
    /// The reader holds what it would hold at this mark, if it swept now; known once a complete state was read.
    end: Option<Mark>,
}

/// A group under way.
#[derive(Debug)]
struct Sending {
    runs: Vec<(Arc<Group>, Range<usize>)>,
    /// The last change in it.
    last: Revision,
    /// What the reader holds after it.
    mark: Mark,
    /// Changes of the feed up to there.
    changes: u64,
    settled: bool,
    /// It leads to another scope.
    switches: bool,
}

// === impl Cursor ===

impl Cursor {
    pub(crate) fn new(store: Collection, scope: Scope, signal: Signal) -> Self {
        let reading = Reading::new(&store, scope, &signal);
        Self {
            store,
            signal,
            origins: Vec::new(),
            reading,
            next: None,
            at: Revision::ZERO,
            seen: Revision::ZERO,
            held: Some(Digest::ZERO),
            snapshot: None,
            sending: None,
            changes: None,
            traffic: Traffic::default(),
        }
    }

    /// Whether everything that this reader could be missing is there: its kinds are complete, and what it holds was
    /// synced again in this epoch.
    pub fn is_settled(&self, origins: &[Origin]) -> bool {
        self.store.state().is_settled(&self.reading.scope, origins)
    }

    /// Goes on from `revision`, at which the reader held its feed exactly. `false`: the collection no longer knows what
    /// changed since, or the digest that the reader offers is not that of its feed.
    pub fn resume(&mut self, revision: Revision, root: Option<Digest>) -> bool {
        let view = self.view();
        let floor = view.sights.iter().map(|sight| sight.floor).max().unwrap_or_default();
        if revision > view.state.head || revision < view.state.horizon.max(floor) {
            return false;
        }
        if view.last > revision {
            let revision = match () {
                () if planted::is(Bug::ResumeTooLate) => revision.next(),
                () if planted::is(Bug::ResumeTooEarly) => Revision(revision.0.saturating_sub(1)),
                () => revision,
            };
            (self.at, self.seen, self.held, self.changes) = (revision, revision, root, None);
            return true;
        }
        let agrees = root.is_none_or(|root| root == view.mark.digest);
        if agrees {
            self.arrive(view.last, view.mark, view.changes);
        }
        agrees
    }

    /// Whether the reader holds exactly its feed; if so, it goes on from here.
    pub fn is_equal(&mut self, root: Digest) -> bool {
        let view = self.view();
        let equal = view.mark.digest == root;
        if equal {
            self.arrive(view.last, view.mark, view.changes);
        }
        equal
    }

    /// How many buckets of those that the reader offers differ, and how many bytes it would take to send them.
    pub fn estimate(&mut self, offer: Option<&Buckets>) -> (u32, u64) {
        let view = self.view();
        let differing = view.differing(offer);
        (differing.len(), view.sights.iter().map(|sight| sight.bytes_in(&differing)).sum())
    }

    /// Begins a snapshot of the buckets that differ from what the reader offers. It ends when the kinds are complete
    /// and what comes from these origins was synced again.
    pub fn begin_snapshot(&mut self, offer: Option<&Buckets>, origins: Vec<Origin>) -> Piece {
        self.origins = origins;
        self.open_snapshot(offer)
    }

    /// Reads another scope from the next group on; the difference is sent.
    pub fn rescope(&mut self, scope: Scope) {
        let scope = if planted::is(Bug::IgnoreRescope) { self.reading.scope.clone() } else { scope };
        self.next = Some(Reading::new(&self.store, scope, &self.signal));
        self.signal.raise();
    }

    /// What the reader is to be sent next; `None` if it has everything. Then the signal is raised when there is more.
    #[allow(clippy::should_implement_trait, reason = "it is no iterator: after nothing, there may be more")]
    pub fn next(&mut self) -> Option<Piece> {
        loop {
            if self.sending.is_some() {
                return Some(self.step());
            }
            if let Some(snapshot) = &self.snapshot
                && let Some(mark) = snapshot.end
            {
                self.snapshot = None;
                // What the reader holds is of this history now: nobody has to publish it again first.
                self.origins.clear();
                return Some(Piece::SnapshotEnd(mark));
            }
            if let Some(next) = self.next.take() {
                return Some(self.switch(next));
            }
            if let Some(piece) = self.advance()? {
                return Some(piece);
            }
        }
    }

    /// What the reader holds, if it has everything.
    pub fn bookmark(&mut self) -> Option<Mark> {
        if self.sending.is_some() || self.snapshot.is_some() || self.next.is_some() {
            return None;
        }
        let view = self.view();
        if view.last > self.at || self.is_lost(&view) {
            return None;
        }
        self.seen = view.mark.revision;
        Some(view.mark)
    }

    /// The scope that is being read.
    pub fn scope(&self) -> &Scope {
        &self.reading.scope
    }

    /// The last revision at which the reader held its feed exactly.
    pub fn position(&self) -> Revision {
        self.seen.max(self.at)
    }

    /// What the reader was sent since this was last asked, and what it was spared.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// The last change that was read; below [`Cursor::position`] where what came after it is not for this reader.
    pub fn last_read(&self) -> Revision {
        self.at
    }

    fn view(&mut self) -> View {
        self.reading.view(&self.store)
    }

    /// Sends the next frame of the group under way.
    fn step(&mut self) -> Piece {
        let sending = self.sending.as_mut().expect("a group is under way");
        let commits = self.snapshot.is_none();
        let alone = sending.runs.len() == 1;
        let Some((group, frames)) = sending.runs.first_mut() else {
            let frame = frame::batch(std::iter::empty(), Some(sending.mark.revision));
            self.finish();
            return Piece::Frame(frame.into());
        };
        let at = frames.start;
        let ends = alone && at + 1 == frames.end;
        // A group of one run says in its last frame what it completes; if there were several, a frame of its own does.
        let completes = (ends && commits && sending.mark.revision == sending.last).then_some(sending.last);
        let told = if planted::is(Bug::TearTransaction) && commits { Some(sending.last) } else { completes };
        let Some(frame) = group.frame(at, told) else {
            return self.restart();
        };
        frames.start += 1;
        if frames.start == frames.end {
            sending.runs.remove(0);
        }
        if completes.is_some() || (ends && !commits) {
            self.finish();
        }
        Piece::Frame(frame)
    }

    fn finish(&mut self) {
        let sending = self.sending.take().expect("a group is under way");
        self.arrive(sending.last, sending.mark, sending.changes);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.passed = true;
            snapshot.end = sending.settled.then_some(sending.mark);
        }
    }

    fn arrive(&mut self, last: Revision, mark: Mark, changes: u64) {
        (self.at, self.seen, self.held) = (last, mark.revision, Some(mark.digest));
        self.changes = Some(changes);
    }

    /// Breaks off the group under way. If the reader could not tell where it began, or if it led to another scope,
    /// then only a snapshot leads on.
    fn restart(&mut self) -> Piece {
        let switches = self.sending.take().is_some_and(|sending| sending.switches);
        if self.snapshot.is_some() || switches {
            self.snapshot = Some(Snapshot { passed: false, end: None });
        }
        Piece::Restarted
    }

    /// Whether ends of objects were forgotten that this reader has not seen: only a snapshot tells what is gone.
    fn is_lost(&self, view: &View) -> bool {
        self.seen < view.state.horizon && self.held != Some(view.mark.digest)
    }

    /// Looks for something to send. `None`: there is nothing; `Some(None)`: a group is under way now.
    fn advance(&mut self) -> Option<Option<Piece>> {
        if self.snapshot.as_ref().is_some_and(|snapshot| !snapshot.passed) {
            // It was revoked before everything in it was sent, or the scope changed meanwhile.
            return Some(Some(self.open_snapshot(None)));
        }
        let view = self.view();
        let settled = view.state.is_settled(&self.reading.scope, &self.origins);
        if self.is_lost(&view) {
            return Some(Some(self.open_snapshot(None)));
        }
        if view.last <= self.at {
            self.seen = view.mark.revision;
            let waiting = self.snapshot.as_mut().filter(|_| settled)?;
            waiting.end = Some(view.mark);
            return Some(None);
        }
        let sight_span = |sight: &Arc<Sight>| (sight.last > self.at).then_some(Span::After(self.at));
        let spans = view.sights.iter().map(sight_span).collect::<Vec<_>>();
        self.send(&view, &spans, settled);
        Some(None)
    }

    fn open_snapshot(&mut self, offer: Option<&Buckets>) -> Piece {
        (self.at, self.seen, self.held, self.changes) = (Revision::ZERO, Revision::ZERO, None, None);
        self.snapshot = Some(Snapshot { passed: false, end: None });
        let view = self.view();
        let buckets = view.differing(offer);
        let settled = view.state.is_settled(&self.reading.scope, &self.origins);
        let spans = vec![Some(Span::Snapshot(buckets)); view.sights.len()];
        let (objects, bytes) = self.send(&view, &spans, settled);
        Piece::SnapshotBegin { buckets, objects, bytes }
    }

    /// Puts the changes of each part into an order that heeds references across parts.
    fn send(&mut self, view: &View, spans: &[Option<Span>], settled: bool) -> (u64, u64) {
        let (groups, contents) = loop {
            let groups: Vec<Arc<Group>> = (self.reading.parts.iter().zip(&view.sights).zip(spans))
                .filter_map(|((feed, sight), span)| span.map(|span| feed.group(sight, span, self.store.feeds())))
                .collect();
            let contents: Option<Vec<_>> = groups.iter().map(|group| group.contents()).collect();
            if let Some(contents) = contents {
                break (groups, contents);
            }
        };
        let runs = match (&*groups, &*contents) {
            ([group], [contents]) => vec![(group.clone(), 0..contents.removal_frames().end)],
            ([outer, inner], [outer_contents, inner_contents]) if outer_contents.nests(inner_contents) => vec![
                (outer.clone(), outer_contents.put_frames()),
                (inner.clone(), 0..inner_contents.removal_frames().end),
                (outer.clone(), outer_contents.removal_frames()),
            ],
            _ => {
                let joined = Arc::new(Contents::join(&contents, self.store.feeds().frame_bytes()));
                let frames = joined.contents().map_or(0, |contents| contents.removal_frames().end);
                vec![(joined, 0..frames)]
            }
        };
        self.count(contents.iter().map(|contents| contents.len() as u64).sum(), view);
        self.send_runs(runs, view, settled);
        let total = |count: fn(&Group) -> usize| groups.iter().map(|group| count(group) as u64).sum();
        (total(Group::objects), total(Group::bytes))
    }

    /// Takes note of what is sent on the way to a view, and of what is not because something later is.
    fn count(&mut self, events: u64, view: &View) {
        self.traffic.events += events;
        let changes = self.changes.map_or(events, |before| view.changes.saturating_sub(before));
        self.traffic.coalesced += changes.saturating_sub(events);
    }

    fn send_runs(&mut self, mut runs: Vec<(Arc<Group>, Range<usize>)>, view: &View, settled: bool) {
        runs.retain(|(_, frames)| !frames.is_empty());
        self.store.feeds().admit(runs.iter().map(|(group, _)| group));
        // Where several runs or none follow, the commit says the newest revision; one run shares the feed's own. Below
        // the horizon, something may have come and gone after it without a trace.
        let (last, mut mark) = (view.last, view.mark);
        if runs.len() == 1 && self.snapshot.is_none() && last >= view.state.horizon {
            mark.revision = last;
        }
        self.sending = Some(Sending { runs, last, mark, changes: view.changes, settled, switches: false });
        let sending = self.sending.as_ref().expect("just set");
        if sending.runs.is_empty() {
            self.finish();
        }
    }

    /// Begins to read another scope: what the reader no longer sees ends, what it did not see before is put.
    fn switch(&mut self, next: Reading) -> Piece {
        let old = self.view();
        self.reading = next;
        let new = self.view();
        let hash = self.reading.scope.hash();
        if self.snapshot.is_some() || self.is_lost(&old) {
            self.snapshot = Some(Snapshot { passed: false, end: None });
            return Piece::ScopeChanged(hash);
        }
        let group = Arc::new(difference(self.at, &old, &new, &self.reading, self.store.feeds().frame_bytes()));
        let contents = group.contents();
        let frames = contents.as_ref().map_or(0, |contents| contents.removal_frames().end);
        // Of another scope: what there was before says nothing about it.
        self.changes = None;
        self.count(contents.map_or(0, |contents| contents.len() as u64), &new);
        let settled = new.state.is_settled(&self.reading.scope, &self.origins);
        // Also a switch that changes nothing is completed, so that the reader has a position in the new scope.
        let runs = if frames == 0 { Vec::new() } else { vec![(group, 0..frames)] };
        self.store.feeds().admit(runs.iter().map(|(group, _)| group));
        let changes = new.changes;
        self.sending = Some(Sending { runs, last: new.last, mark: new.mark, changes, settled, switches: true });
        Piece::ScopeChanged(hash)
    }
}
