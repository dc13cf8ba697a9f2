//! What a connection waits for, and until when.

use std::{pin::Pin, task::Context};

use tokio::time::{Instant, Sleep};

use crate::config::Config;

/// What a connection waits for, and until when. It is looked at when something was heard or it is time, and never while
/// only streams are woken.
#[derive(Debug)]
pub(crate) struct Clock {
    timer: Pin<Box<Sleep>>,
    heard: Instant,
    until: Until,
    /// Requests that were on their way when the peer was told to send no more are taken until then.
    grace: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum Until {
    /// The peer says hello.
    Hello(Instant),
    /// It has been silent for long enough to be asked.
    Silence,
    /// It answers.
    Answer(Instant),
    /// It closes the connection, too.
    Farewell(Instant),
}

/// What it is time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The peer is to be asked whether it is there.
    Ping,
    /// No more requests are taken.
    Grace,
    /// It has never said hello.
    Silent,
    /// It does not answer any more.
    Gone,
    /// It had the time to read what it was told last.
    Over,
}

// === impl Clock ===

impl Clock {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        let hello = now + config.handshake;
        let timer = Box::pin(tokio::time::sleep_until(hello));
        Self { timer, heard: now, until: Until::Hello(hello), grace: None }
    }

    /// The peer has said something.
    pub(crate) fn hear(&mut self, now: Instant, is_open: bool) {
        self.heard = now;
        if is_open && matches!(self.until, Until::Hello(_) | Until::Answer(_)) {
            self.until = Until::Silence;
        }
    }

    /// The peer was told to send no more requests.
    pub(crate) fn wait_for_requests(&mut self, until: Instant) {
        self.grace = Some(until);
    }

    /// The peer was told everything.
    pub(crate) fn wait_for_end(&mut self, until: Instant) {
        self.until = Until::Farewell(until);
    }

    /// What it is time for. If nothing, the task is woken when it is.
    pub(crate) fn poll(&mut self, config: &Config, now: Instant, cx: &mut Context<'_>) -> Option<Due> {
        if self.grace.is_some_and(|grace| grace <= now) {
            self.grace = None;
            return Some(Due::Grace);
        }
        let (at, due) = match self.until {
            Until::Hello(at) => (at, Due::Silent),
            Until::Silence => (self.heard + config.keepalive, Due::Ping),
            Until::Answer(at) => (at, Due::Gone),
            Until::Farewell(at) => (at, Due::Over),
        };
        if at <= now {
            if due == Due::Ping {
                self.until = Until::Answer(now + config.keepalive);
            }
            return Some(due);
        }
        let deadline = self.grace.map_or(at, |grace| grace.min(at));
        // What is put off is put off when it is time: a timer that is set anew each time costs more.
        if deadline < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(deadline);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            // Nearly always a deadline that was put off since.
            self.timer.as_mut().reset(deadline);
            if self.timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        None
    }
}
