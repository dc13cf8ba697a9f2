//! Requests that are on their way in: what they may cost before anybody has looked at them.
//!
//! A message is gathered in memory until it is complete, and then becomes structs that may be a hundred times larger than
//! it. So bodies of requests pass through here: incomplete messages share a [`Budget`], and a message of very many parts
//! is refused before it is decoded.

mod scan;
#[cfg(test)]
mod tests;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use http_body::{Body as _, Frame};
use nimbus_http2::{Interrupted, RequestBody};
use tonic::{Status, body::Body};

use self::scan::Scan;
use crate::{
    budget::{Budget, Share},
    config::Limits,
    fault,
    metrics::Metrics,
};

/// What bodies of requests are held to.
#[derive(Clone)]
pub(crate) struct Incoming {
    budget: Arc<Budget>,
    max_parts: usize,
    metrics: Metrics,
}

/// The body of a request.
struct Watched {
    body: RequestBody,
    scan: Scan,
    share: Share,
    incoming: Incoming,
}

/// A stream costs as much by itself, and most messages are smaller: what is kept of them is not worth counting.
const SMALL: usize = 4 << 10;

// === impl Incoming ===

impl Incoming {
    pub(crate) fn new(limits: &Limits, metrics: Metrics) -> Self {
        let budget = Arc::new(Budget::new(limits.incoming_bytes));
        Self { budget, max_parts: limits.message_parts, metrics }
    }

    /// A request whose body is held to the limits.
    pub(crate) fn watch(&self, request: http::Request<RequestBody>) -> http::Request<Body> {
        request.map(|body| {
            if body.is_end_stream() {
                return Body::empty();
            }
            let share = Share::new(self.budget.clone());
            Body::new(Watched { body, scan: Scan::default(), share, incoming: self.clone() })
        })
    }

    /// Bytes of messages that are not complete.
    pub(crate) fn bytes(&self) -> usize {
        self.budget.bytes()
    }
}

// === impl Watched ===

impl Watched {
    fn look(&mut self, data: &Bytes) -> Result<(), Status> {
        self.scan.read(data);
        let most = self.incoming.max_parts;
        if self.scan.parts() > most {
            self.share.set(0);
            return Err(
                self.refuse("message_parts", format!("fields and elements of one message are limited to {most}"))
            );
        }
        let held = self.scan.held();
        self.share.set(if held > SMALL { held } else { 0 });
        Ok(())
    }

    fn refuse(&self, limit: &'static str, message: String) -> Status {
        self.incoming.metrics.refuse(limit);
        fault::full(limit, message)
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.share.poll_revoked(cx) {
            let most = this.incoming.budget.limit();
            let message = format!(
                "bytes of requests that are not complete are limited to {most}, and this one has taken longest (hint: send \
                 messages as a whole)"
            );
            return Poll::Ready(Some(Err(this.refuse("incoming_bytes", message))));
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            over => {
                // It is complete, or never will be.
                this.share.set(0);
                return Poll::Ready(over.map(|result| result.map_err(given_up)));
            }
        };
        if let Some(data) = frame.data_ref().filter(|data| data.has_remaining())
            && let Err(status) = this.look(data)
        {
            return Poll::Ready(Some(Err(status)));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Nobody waits for an answer any more; it is only for those who look at how a request ended.
fn given_up(why: Interrupted) -> Status {
    Status::cancelled(why.to_string())
}
