//! What is written on the terminal, or into a log.

use std::{
    env,
    io::{self, IsTerminal as _, Write},
    time::Duration,
};

/// What is written on the terminal, or into a log.
pub(crate) struct Screen {
    out: Box<dyn Write + Send>,
    look: Look,
    /// There is a line that the next one replaces.
    is_live: bool,
    /// Nobody reads any more.
    is_closed: bool,
}

/// How it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) colour: bool,
    /// A line may be replaced by the next one.
    pub(crate) live: bool,
    /// Between two steps, so that people can read.
    pub(crate) pause: Duration,
}

/// Columns of a live line: a longer one would wrap, and could not be replaced.
const WIDTH: usize = 100;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";

// === impl Look ===

impl Look {
    /// As it is best on standard output.
    pub(crate) fn of_stdout(pause: Duration) -> Self {
        let live = io::stdout().is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb");
        let colour = live && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colour, live, pause: if live { pause } else { Duration::ZERO } }
    }
}

// === impl Screen ===

impl Screen {
    pub(crate) fn new(out: Box<dyn Write + Send>, look: Look) -> Self {
        Self { out, look, is_live: false, is_closed: false }
    }

    /// A step begins.
    pub(crate) fn heading(&mut self, text: &str) {
        self.line("");
        let text = self.painted(BOLD, text);
        self.line(&text);
    }

    /// Something that was seen to be true.
    pub(crate) fn fact(&mut self, text: &str) {
        let mark = self.painted(GREEN, "✓");
        self.line(&format!("  {mark} {text}"));
    }

    /// Something that was not.
    pub(crate) fn failure(&mut self, expected: &str, seen: &str) {
        let mark = self.painted(RED, "✗");
        self.line(&format!("  {mark} expected: {expected}"));
        self.line(&format!("    seen:     {seen}"));
    }

    /// What is about to happen.
    pub(crate) fn note(&mut self, text: &str) {
        self.line(&format!("  {text}"));
    }

    /// What the reader may type.
    pub(crate) fn command(&mut self, text: &str) {
        let text = self.painted(DIM, &format!("$ {text}"));
        self.line(&format!("    {text}"));
    }

    /// A line that the next one replaces; in a log there is none.
    pub(crate) fn live(&mut self, text: &str) {
        if self.look.live {
            let text: String = text.chars().take(WIDTH).collect();
            self.write(&format!("\r\x1b[K  {text}"));
            self.is_live = true;
        }
    }

    /// Whether lines can be replaced.
    pub(crate) fn has_live(&self) -> bool {
        self.look.live
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Lets people read.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.look.pause).await;
    }

    /// A line, as it is.
    pub(crate) fn line(&mut self, text: &str) {
        let clear = if std::mem::take(&mut self.is_live) { "\r\x1b[K" } else { "" };
        self.write(&format!("{clear}{text}\n"));
    }

    fn write(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.is_closed |= written.is_err();
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.look.colour { format!("{colour}{text}\x1b[0m") } else { text.to_owned() }
    }
}
