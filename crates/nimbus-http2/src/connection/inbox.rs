//! What a connection does about what its peer sends.

use std::{collections::VecDeque, sync::Arc};

use http::{HeaderMap, Request};

use crate::{
    config::Config,
    connection::{
        Interrupted, Wakes,
        call::{Call, Lacks},
        request::Side,
    },
    core::Receive,
    reason::Reason,
    streams::Streams,
};

/// The parts of a connection that what is received changes.
pub(crate) struct Inbox<'a, F, B> {
    pub(crate) config: &'a Config,
    pub(crate) wakes: &'a Arc<Wakes>,
    pub(crate) calls: &'a mut Streams<Call<F, B>>,
    pub(crate) ready: &'a mut VecDeque<u32>,
    pub(crate) blocked: &'a mut VecDeque<u32>,
}

// === impl Inbox ===

impl<F, B> Inbox<'_, F, B> {
    fn go_on(&mut self, stream: u32) {
        if let Some(call) = self.calls.get_mut(stream)
            && call.lacks == Lacks::Stream
        {
            call.lacks = Lacks::Nothing;
            if call.side.queue() {
                self.ready.push_back(stream);
            }
        }
    }
}

impl<F, B> Receive for Inbox<'_, F, B> {
    fn request(&mut self, stream: u32, request: Request<()>, ends: bool) {
        let worth = self.config.stream_window.min(self.config.connection_window) / 4;
        let side = Side::new(self.wakes.clone(), stream, worth);
        if ends {
            side.end(None);
        }
        side.queue();
        self.ready.push_back(stream);
        self.calls.push(stream, Call::new(side, request));
    }

    fn data(&mut self, stream: u32, bytes: &[u8]) -> bool {
        self.calls.get(stream).is_some_and(|call| call.side.data(bytes))
    }

    fn end(&mut self, stream: u32, trailers: Option<HeaderMap>) {
        if let Some(call) = self.calls.get(stream) {
            call.side.end(trailers);
        }
    }

    fn reset(&mut self, stream: u32, reason: Reason) -> u32 {
        let Some(call) = self.calls.remove(stream) else { return 0 };
        if call.lacks == Lacks::Connection {
            self.blocked.retain(|blocked| *blocked != stream);
        }
        call.side.interrupt(Interrupted::Reset(reason))
    }

    fn room(&mut self, stream: Option<u32>) {
        match stream {
            Some(stream) => self.go_on(stream),
            None => {
                for stream in self.calls.numbers() {
                    self.go_on(stream);
                }
            }
        }
    }
}
