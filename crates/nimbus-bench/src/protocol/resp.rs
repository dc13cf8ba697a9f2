//! What a Valkey server sends to a subscriber.

use anyhow::{Context as _, bail};

use crate::protocol::Heard;

/// Counts messages.
#[derive(Debug, Default)]
pub(crate) struct Resp {
    line: Vec<u8>,
    /// Of a text, so many bytes are still to come.
    left: usize,
    /// Texts of the array that is being read.
    texts: u32,
}

// === impl Resp ===

impl Resp {
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> anyhow::Result<Heard> {
        let mut heard = Heard::default();
        while !bytes.is_empty() {
            if self.left > 0 {
                let now = self.left.min(bytes.len());
                self.left -= now;
                bytes = &bytes[now..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                break;
            };
            let (line, rest) = bytes.split_at(end + 1);
            bytes = rest;
            if self.line.is_empty() {
                self.take_line(line, &mut heard)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take_line(&whole, &mut heard)?;
                whole.clear();
                self.line = whole;
            }
        }
        Ok(heard)
    }

    fn take_line(&mut self, line: &[u8], heard: &mut Heard) -> anyhow::Result<()> {
        let line = std::str::from_utf8(line)?.trim_end();
        match line.as_bytes().first() {
            Some(b'*') => self.texts = 0,
            Some(b'$') => {
                self.left = line[1..].parse::<usize>().context("a text without a length")? + 2;
                self.texts += 1;
                // The word `message`, the channel, and the content; the answer to a subscription ends with a number.
                heard.events += u64::from(self.texts == 3);
            }
            Some(b':') => heard.ready = true,
            _ => bail!("the server says {line}"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
