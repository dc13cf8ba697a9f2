//! How far a long command is: a bar on a terminal, a few lines in a log.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use tokio::time::Instant;

use crate::{output::thousands, progress::bar};

/// How far a command is, on standard error.
pub(crate) struct Tally {
    /// What is done to each, such as `applied`.
    verb: &'static str,
    total: usize,
    done: usize,
    on_terminal: bool,
    /// When the bar was drawn.
    drawn: Option<Instant>,
    /// How many make the next line of a log.
    next_line: usize,
}

/// Below this, nobody has to wait.
const MANY: usize = 1_000;

/// Lines in a log, however many there are to do.
const LINES: usize = 10;

/// As fast as eyes follow.
const REDRAW: Duration = Duration::from_millis(50);

const BAR_WIDTH: usize = 30;

// === impl Tally ===

impl Tally {
    /// Nothing is done yet.
    pub(crate) fn new(verb: &'static str, total: usize) -> Self {
        let on_terminal = io::stderr().is_terminal();
        Self { verb, total, done: 0, on_terminal, drawn: None, next_line: step(total) }
    }

    /// So many more are done.
    pub(crate) fn advance(&mut self, more: usize) {
        self.done += more;
        if self.total < MANY {
            return;
        }
        if self.on_terminal {
            let now = Instant::now();
            if self.drawn.is_none_or(|drawn| now >= drawn + REDRAW) {
                self.drawn = Some(now);
                say(&format!("\r{}", self.bar()));
            }
            return;
        }
        while self.done >= self.next_line && self.next_line < self.total {
            say(&format!("nimbus: {} {}\n", self.verb, self.of(self.next_line)));
            self.next_line += step(self.total);
        }
    }

    /// How far it is, in words.
    pub(crate) fn words(&self) -> String {
        format!("{} {}", self.verb, self.of(self.done))
    }

    /// Makes room for what comes after it.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            say("\r\u{1b}[K");
        }
    }

    fn of(&self, done: usize) -> String {
        format!("{} of {}", thousands(done), thousands(self.total))
    }

    fn bar(&self) -> String {
        let (done, total) = (self.done.min(u32::MAX as usize) as u32, self.total.min(u32::MAX as usize) as u32);
        format!("{} {}", bar(done, total, BAR_WIDTH), self.words())
    }
}

fn step(total: usize) -> usize {
    total.div_ceil(LINES).max(1)
}

/// Tally is a courtesy: if nobody can be told, the work goes on.
fn say(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
