//! What a NATS server sends.

use anyhow::{Context as _, bail};

use crate::protocol::{Heard, lines::Lines};

/// Counts messages.
#[derive(Debug, Default)]
pub(crate) struct Nats(Lines);

// === impl Nats ===

impl Nats {
    pub(crate) fn take(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> anyhow::Result<Heard> {
        let mut heard = Heard::default();
        self.0.take(bytes, |line| header(line, answer, &mut heard))?;
        Ok(heard)
    }
}

/// Takes a line, and says how many bytes of content follow it.
fn header(line: &[u8], answer: &mut Vec<u8>, heard: &mut Heard) -> anyhow::Result<usize> {
    let line = std::str::from_utf8(line)?.trim_end();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let last = || -> anyhow::Result<usize> {
        rest.rsplit(' ').next().unwrap_or_default().parse().context("a message without a length")
    };
    match word {
        "MSG" => {
            heard.events += 1;
            Ok(last()? + 2)
        }
        // Objects are published without headers: this is the consumer's heartbeat, or it asks whether we still read.
        "HMSG" => {
            let words: Vec<&str> = rest.split(' ').collect();
            if let [_, _, reply, _, _] = words[..] {
                answer.extend_from_slice(format!("PUB {reply} 0\r\n\r\n").as_bytes());
            }
            Ok(last()? + 2)
        }
        "PING" => {
            answer.extend_from_slice(b"PONG\r\n");
            Ok(0)
        }
        "PONG" => {
            heard.ready = true;
            Ok(0)
        }
        "INFO" | "+OK" => Ok(0),
        _ => bail!("the server says {line}"),
    }
}

#[cfg(test)]
mod tests;
