//! Answers: headers, data as far as there is room, and trailers.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::{
    core::Core,
    frame::{self, Head, flag, kind},
    hpack::encoder,
    output::Output,
    reason::Reason,
};

// === impl Core ===

impl Core {
    /// How much may be sent on a stream now.
    pub fn room(&self, stream: u32) -> usize {
        let window = self.streams.get(stream).map_or(0, |stream| stream.window.min(self.window));
        usize::try_from(window).unwrap_or(0)
    }

    /// Whether anything may be sent on the connection now.
    pub fn has_room(&self) -> bool {
        self.window > 0
    }

    /// Begins an answer, which has no body if it `ends`.
    pub fn respond(&mut self, stream: u32, status: StatusCode, fields: &HeaderMap, ends: bool, out: &mut Output) {
        let mut block = Vec::with_capacity(128);
        encoder::status(&mut block, status);
        encoder::fields(&mut block, fields);
        frame::write_block(out, stream, &block, ends, self.peer.frame_bytes);
        if ends {
            self.close(stream, out);
        }
    }

    /// Sends data, as much of it as there is room for; what is left remains in `bytes`.
    pub fn send(&mut self, stream: u32, bytes: &mut Bytes, out: &mut Output) {
        let room = self.room(stream);
        let Some(state) = self.streams.get_mut(stream) else { return };
        let mut now = bytes.split_to(room.min(bytes.len()));
        let sent = i32::try_from(now.len()).expect("no window is larger");
        state.window -= sent;
        self.window -= sent;
        while !now.is_empty() {
            let part = now.split_to(now.len().min(self.peer.frame_bytes));
            out.own(&Head { length: part.len(), kind: kind::DATA, flags: 0, stream }.to_bytes());
            out.shared(part);
        }
    }

    /// Ends an answer, with trailers if there are any.
    pub fn end(&mut self, stream: u32, trailers: Option<&HeaderMap>, out: &mut Output) {
        match trailers.filter(|trailers| !trailers.is_empty()) {
            Some(trailers) => {
                let mut block = Vec::with_capacity(64);
                encoder::fields(&mut block, trailers);
                frame::write_block(out, stream, &block, true, self.peer.frame_bytes);
            }
            None => frame::write(out, kind::DATA, flag::END_STREAM, stream, &[]),
        }
        self.close(stream, out);
    }

    /// So much of a request was read, or will not be: the peer may send as much again.
    pub fn give_back(&mut self, stream: u32, bytes: u32, out: &mut Output) {
        if bytes == 0 {
            return;
        }
        if let Some(more) = self.credit.give_back(bytes, self.config.connection_window) {
            frame::write_window(out, 0, more);
        }
        let window = self.config.stream_window;
        if let Some(state) = self.streams.get_mut(stream)
            && !state.is_whole
            && let Some(more) = state.credit.give_back(bytes, window)
        {
            frame::write_window(out, stream, more);
        }
    }

    /// An answer has ended. Nobody reads the rest of its request.
    fn close(&mut self, stream: u32, out: &mut Output) {
        match self.streams.get(stream) {
            Some(state) if !state.is_whole => self.reset(stream, Reason::NO_ERROR, out),
            _ => {
                self.streams.remove(stream);
                self.remember(stream);
            }
        }
    }
}
