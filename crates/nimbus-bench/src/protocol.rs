//! What a subscriber must understand of the protocols: just enough to count what it is sent.
//!
//! Nothing is decoded and nothing is kept, so that a thousand subscribers fit beside the server on one machine.

mod fields;
mod http2;
mod lines;
mod nats;
mod resp;

pub(crate) use self::{
    fields::Counted,
    http2::{Grpc, Settings},
    nats::Nats,
    resp::Resp,
};

/// What a subscriber reads.
#[derive(Debug)]
pub(crate) enum Protocol {
    Grpc(Box<Grpc>),
    Nats(Nats),
    Resp(Resp),
    Raw(Raw),
}

/// Records of one size, of which the first is a greeting.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) size: usize,
    pub(crate) received: usize,
}

/// What was in the bytes of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Heard {
    /// Events.
    pub(crate) events: u64,
    /// The server has said that the subscriber has everything that there was.
    pub(crate) ready: bool,
}

// === impl Protocol ===

impl Protocol {
    /// Takes what was read; what has to be answered is added to `answer`.
    pub(crate) fn take(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> anyhow::Result<Heard> {
        match self {
            Self::Grpc(grpc) => grpc.take(bytes, answer),
            Self::Nats(nats) => nats.take(bytes, answer),
            Self::Resp(resp) => resp.take(bytes),
            Self::Raw(raw) => Ok(raw.take(bytes)),
        }
    }
}

// === impl Raw ===

impl Raw {
    fn take(&mut self, bytes: &[u8]) -> Heard {
        let before = (self.received / self.size) as u64;
        self.received += bytes.len();
        let now = (self.received / self.size) as u64;
        Heard { events: now.saturating_sub(1) - before.saturating_sub(1), ready: before == 0 && now > 0 }
    }
}
