//! Ends: of streams, and of the connection.

use tokio::time::Instant;

use crate::{
    core::{Core, Opening, REMEMBERED, Receive, Turn},
    frame::{self, MAX_WINDOW, kind},
    output::Output,
    reason::{Fatal, Reason},
};

/// How far the connection is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going {
    On,
    /// The peer was told; what it sent before it heard of that is still taken.
    Told,
    /// No new streams are taken.
    Last,
}

/// The answer to this says that the peer has heard that we are leaving.
pub(crate) const FAREWELL: [u8; 8] = *b"farewell";

// === impl Core ===

impl Core {
    /// Tells the peer to open no more streams. Those that are open go on.
    pub fn drain(&mut self, out: &mut Output) {
        if self.going != Going::On {
            return;
        }
        if matches!(self.opening, Opening::Preface(_)) {
            self.going = Going::Last;
            return;
        }
        self.going = Going::Told;
        frame::write_goaway(out, MAX_WINDOW.unsigned_abs(), Reason::NO_ERROR, "");
        frame::write(out, kind::PING, 0, 0, &FAREWELL);
    }

    /// Takes no new streams from now on, because the peer has heard that it should not open any, or had the time to.
    pub fn finish_drain(&mut self, out: &mut Output) {
        if self.going == Going::Told {
            self.going = Going::Last;
            frame::write_goaway(out, self.last, Reason::NO_ERROR, "");
        }
    }

    /// Whether nothing more will happen.
    pub fn is_done(&self) -> bool {
        (self.going == Going::Last || self.is_leaving) && self.streams.is_empty()
    }

    /// Tells the peer why the connection ends.
    pub fn fail(&mut self, fatal: Fatal, out: &mut Output) {
        if !matches!(self.opening, Opening::Preface(_)) {
            frame::write_goaway(out, self.last, fatal.reason, fatal.text);
        }
    }

    /// Ends a stream, and remembers that what comes on it may have been sent before the peer knew.
    pub fn reset(&mut self, stream: u32, reason: Reason, out: &mut Output) {
        frame::write_reset(out, stream, reason);
        let is_whole = self.streams.remove(stream).is_some_and(|stream| stream.is_whole);
        if is_whole {
            self.remember(stream);
            return;
        }
        if self.reset.len() >= REMEMBERED {
            self.reset.pop_front();
        }
        self.reset.push_back(stream);
    }

    /// Ends a stream that the peer has broken.
    pub(crate) fn refuse(
        &mut self,
        stream: u32,
        reason: Reason,
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        let unread = turn.to.reset(stream, reason);
        self.give_back(stream, unread, turn.out);
        self.reset(stream, reason, turn.out);
        self.fail_once(turn.now)
    }

    /// Something was begun for nothing.
    pub(crate) fn fail_once(&mut self, now: Instant) -> Result<(), Fatal> {
        if self.failures.take(now) {
            return Ok(());
        }
        Err(Reason::ENHANCE_YOUR_CALM.fatal("too many streams were given up, or had to be refused"))
    }

    /// A stream has ended on both sides.
    pub(crate) fn remember(&mut self, stream: u32) {
        self.ended.rotate_right(1);
        self.ended[0] = stream;
    }

    /// Whether there was no such stream yet.
    pub(crate) fn is_idle(&self, stream: u32) -> bool {
        (stream > self.last || stream.is_multiple_of(2)) && !self.is_ignored(stream)
    }

    /// Whether frames on this stream, which is not there, are of no interest rather than wrong.
    pub(crate) fn is_ignored(&self, stream: u32) -> bool {
        let is_late = self.going == Going::Last && stream > self.last && !stream.is_multiple_of(2);
        is_late || self.reset.contains(&stream)
    }
}
