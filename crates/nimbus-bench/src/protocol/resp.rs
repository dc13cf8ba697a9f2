//! What a Valkey server sends to a subscriber.

use anyhow::{Context as _, bail};

use crate::protocol::{Heard, lines::Lines};

/// Counts messages.
#[derive(Debug, Default)]
pub(crate) struct Resp {
    lines: Lines,
    /// Texts of the array that is being read.
    texts: u32,
}

// === impl Resp ===

impl Resp {
    pub(crate) fn take(&mut self, bytes: &[u8]) -> anyhow::Result<Heard> {
        let Self { lines, texts } = self;
        let mut heard = Heard::default();
        lines.take(bytes, |line| header(line, texts, &mut heard))?;
        Ok(heard)
    }
}

/// Takes a line, and says how many bytes of content follow it.
fn header(line: &[u8], texts: &mut u32, heard: &mut Heard) -> anyhow::Result<usize> {
    let line = std::str::from_utf8(line)?.trim_end();
    match line.as_bytes().first() {
        Some(b'*') => *texts = 0,
        Some(b'$') => {
            *texts += 1;
            // The word `message`, the channel, and the content; the answer to a subscription ends with a number.
            heard.events += u64::from(*texts == 3);
            return Ok(line[1..].parse::<usize>().context("a text without a length")? + 2);
        }
        Some(b':') => heard.ready = true,
        _ => bail!("the server says {line}"),
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
