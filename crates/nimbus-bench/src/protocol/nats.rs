//! What a NATS server sends.

use anyhow::{Context as _, bail};

use crate::protocol::Heard;

/// Counts messages.
#[derive(Debug, Default)]
pub(crate) struct Nats {
    line: Vec<u8>,
    /// Of the content of a message, so many bytes are still to come.
    left: usize,
}

// === impl Nats ===

impl Nats {
    pub(crate) fn take(&mut self, mut bytes: &[u8], answer: &mut Vec<u8>) -> anyhow::Result<Heard> {
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
            self.left = if self.line.is_empty() {
                header(line, answer, &mut heard)?
            } else {
                self.line.extend_from_slice(line);
                let content = header(&self.line, answer, &mut heard);
                self.line.clear();
                content?
            };
        }
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
