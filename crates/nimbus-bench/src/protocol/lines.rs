//! Protocols of lines, some of which announce so many bytes of content.

/// Finds lines in what is read, in whatever pieces, and leaves out contents.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not been read.
    begun: Vec<u8>,
    /// Of a content, so many bytes are still to come.
    left: usize,
}

// === impl Lines ===

impl Lines {
    /// Hands over each line; the answer is how many bytes of content follow it.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        mut see: impl FnMut(&[u8]) -> anyhow::Result<usize>,
    ) -> anyhow::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let now = self.left.min(bytes.len());
                self.left -= now;
                bytes = &bytes[now..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.begun.extend_from_slice(bytes);
                break;
            };
            let (line, rest) = bytes.split_at(end + 1);
            bytes = rest;
            self.left = if self.begun.is_empty() {
                see(line)?
            } else {
                self.begun.extend_from_slice(line);
                let left = see(&self.begun);
                self.begun.clear();
                left?
            };
        }
        Ok(())
    }
}
