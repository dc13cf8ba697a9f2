//! Requests: their headers, their trailers, and those that are none.

use http::{HeaderMap, Request, StatusCode};

use crate::{
    core::{Core, Receive, Turn},
    head::{Bad, Builder},
    reason::{Fatal, Reason},
    stream::Stream,
};

// === impl Core ===

impl Core {
    /// Takes a header block. It is decoded whatever it is for, because those after it build on it.
    pub(crate) fn on_block(
        &mut self,
        stream: u32,
        block: &[u8],
        ends: bool,
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        let mut builder = Builder::new(self.config.header_bytes);
        let decoded = self.decoder.decode(block, |name, value| builder.field(name, value));
        decoded.map_err(|_| Reason::COMPRESSION_ERROR.fatal("a header block cannot be decoded"))?;
        if self.streams.get(stream).is_some() {
            return self.on_trailers(stream, builder.into_trailers(), ends, turn);
        }
        if stream.is_multiple_of(2) {
            return Err(Reason::PROTOCOL_ERROR.fatal("streams of a client have odd numbers"));
        }
        if self.is_ignored(stream) {
            return Ok(());
        }
        if self.ended.contains(&stream) {
            return Err(Reason::STREAM_CLOSED.fatal("headers on a stream that has ended"));
        }
        if stream <= self.last {
            return Err(Reason::PROTOCOL_ERROR.fatal("numbers of streams only rise"));
        }
        self.last = stream;
        if self.streams.len() >= self.config.streams as usize {
            return self.refuse_new(stream, Reason::REFUSED_STREAM, ends, turn);
        }
        match builder.into_request() {
            Ok(request) => self.on_request(stream, request, ends, turn),
            Err(Bad::Malformed) => self.refuse_new(stream, Reason::PROTOCOL_ERROR, ends, turn),
            Err(Bad::TooLarge) => {
                let state = Stream::new(self.peer.window, 0, ends, &HeaderMap::new());
                self.streams.push(stream, state.expect("it says nothing that could be wrong"));
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                self.respond(stream, status, &HeaderMap::new(), true, turn.out);
                self.fail_once(turn.now)
            }
        }
    }

    fn on_request(
        &mut self,
        stream: u32,
        request: Request<()>,
        ends: bool,
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        let state = Stream::new(self.peer.window, self.config.stream_window, ends, request.headers());
        let Some(state) = state else {
            return self.refuse_new(stream, Reason::PROTOCOL_ERROR, ends, turn);
        };
        self.streams.push(stream, state);
        turn.to.request(stream, request, ends);
        Ok(())
    }

    fn on_trailers(
        &mut self,
        stream: u32,
        trailers: Result<HeaderMap, Bad>,
        ends: bool,
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        let state = self.streams.get_mut(stream).expect("the caller has looked");
        if state.is_whole {
            return self.refuse(stream, Reason::STREAM_CLOSED, turn);
        }
        match trailers {
            Ok(trailers) if ends && state.end() => {
                turn.to.end(stream, Some(trailers));
                Ok(())
            }
            Err(Bad::TooLarge) => self.refuse(stream, Reason::ENHANCE_YOUR_CALM, turn),
            _ => self.refuse(stream, Reason::PROTOCOL_ERROR, turn),
        }
    }

    /// Refuses a stream that nobody has heard of.
    fn refuse_new(
        &mut self,
        stream: u32,
        reason: Reason,
        ends: bool,
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        self.reset(stream, reason, turn.out);
        if ends {
            // Nothing can be on its way.
            self.reset.pop_back();
            self.remember(stream);
        }
        self.fail_once(turn.now)
    }
}
