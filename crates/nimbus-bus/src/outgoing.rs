//! Answers that are on their way out: what they may cost while nobody reads them.
//!
//! A transport asks for the bytes of an answer when its reader has room for some, and whoever never has makes the bus keep it. So
//! answers are encoded at once, and share a [`Budget`] until they are read.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

use crate::{
    budget::{Budget, Share},
    config::Limits,
    fault, handmade,
    metrics::Metrics,
};

/// What answers are held to.
#[derive(Clone)]
pub(crate) struct Outgoing {
    budget: Arc<Budget>,
    metrics: Metrics,
}

/// In the extensions of a response: its bytes are shared with others, and are accounted for elsewhere.
#[derive(Clone)]
pub(crate) struct Shared;

/// The body of an answer, whose first message is encoded.
struct Unread {
    /// What is encoded, and was not read.
    share: Share,
    /// What comes after it, as far as it was there at once: mostly the trailers.
    next: Option<Frame<Bytes>>,
    /// What comes after that; `None`: nothing.
    rest: Option<Body>,
    outgoing: Outgoing,
}

/// What is smaller costs less than the stream that it is on.
const SMALL: usize = 4 << 10;

/// Handed to the transport at once. It keeps a piece until there is room for all of it.
const PIECE: usize = 16 << 10;

// === impl Outgoing ===

impl Outgoing {
    pub(crate) fn new(limits: &Limits, metrics: Metrics) -> Self {
        Self { budget: Arc::new(Budget::new(limits.outgoing_bytes)), metrics }
    }

    /// A response whose body is held to the limit.
    pub(crate) fn hold(&self, response: http::Response<Body>) -> http::Response<Body> {
        if response.extensions().get::<Shared>().is_some() {
            return response;
        }
        response.map(|body| self.hold_body(body))
    }

    /// Bytes of answers that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.budget.bytes()
    }

    fn hold_body(&self, mut body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        let mut unread =
            Unread { share: Share::new(self.budget.clone()), next: None, rest: None, outgoing: self.clone() };
        // Whoever reads it polls again, with a waker of its own.
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(first))) => unread.next = unread.keep(first),
            Poll::Ready(Some(Err(status))) => return status.into_http::<Body>().into_body(),
            Poll::Ready(None) => return Body::empty(),
            Poll::Pending => {
                unread.rest = Some(body);
                return Body::new(unread);
            }
        }
        // What follows a large answer is mostly its end, for which nothing need be kept.
        if unread.next.is_none() {
            match Pin::new(&mut body).poll_frame(&mut cx) {
                Poll::Ready(Some(Ok(next))) if next.is_trailers() => unread.next = Some(next),
                Poll::Ready(Some(Ok(next))) => (unread.next, unread.rest) = (Some(next), Some(body)),
                Poll::Ready(Some(Err(_)) | None) => {}
                Poll::Pending => unread.rest = Some(body),
            }
        } else if !unread.next.as_ref().is_some_and(Frame::is_trailers) {
            unread.rest = Some(body);
        }
        Body::new(unread)
    }
}

// === impl Unread ===

impl Unread {
    /// Keeps what is large, and returns what is not. A stream says ever more: each message is held to the limit.
    fn keep(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        match frame.into_data() {
            // A buffer that has grown with what was put into it is up to twice as large, and would be kept as a whole.
            Ok(data) if data.len() > SMALL => {
                self.share.keep(Bytes::copy_from_slice(&data));
                None
            }
            Ok(data) => Some(Frame::data(data)),
            Err(trailers) => Some(trailers),
        }
    }
}

impl http_body::Body for Unread {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.share.poll_revoked(cx) {
            (this.next, this.rest) = (None, None);
            this.outgoing.metrics.refuse("outgoing_bytes");
            let most = this.outgoing.budget.limit();
            let message = format!(
                "bytes of answers that wait are limited to {most}, and this one has waited longest (hint: read it)"
            );
            // Whoever still reads learns why: an error of a body would only reset the stream.
            return Poll::Ready(Some(handmade::end(&fault::full("outgoing_bytes", message))));
        }
        let piece = this.share.take(PIECE);
        if !piece.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let frame = match (this.next.take(), &mut this.rest) {
            (Some(next), _) => Some(Ok(next)),
            (None, Some(rest)) => ready!(Pin::new(rest).poll_frame(cx)),
            (None, None) => None,
        };
        match frame {
            Some(Ok(frame)) => match this.keep(frame) {
                Some(small) => Poll::Ready(Some(Ok(small))),
                // It is there, and so is its first piece.
                None => Poll::Ready(Some(Ok(Frame::data(this.share.take(PIECE))))),
            },
            over => {
                this.rest = None;
                Poll::Ready(over)
            }
        }
    }

    /// What is encoded, so that the transport knows what it took.
    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.share.kept() as u64);
        hint
    }
}

#[cfg(test)]
mod tests;
