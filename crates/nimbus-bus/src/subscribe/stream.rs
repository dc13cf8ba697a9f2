//! The response body of a subscription.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame as HttpFrame;
use nimbus_store::Traffic;
use nimbus_wire::v1::{self, frame::Frame};
use tokio::time::{Duration, Instant, Sleep};
use tonic::Status;

use crate::{
    handmade,
    session::Order,
    subscribe::answer::{Answer, Phase},
};

/// The frames of one subscription, as the transport asks for them.
pub(crate) struct FrameStream {
    answer: Answer,
    timer: Pin<Box<Sleep>>,
    /// The next bookmark is due at this time; it is sent as soon as the subscriber has everything.
    due: Instant,
    sent: u64,
    /// The session is over; what was put before it still goes.
    ending: Option<Status>,
    ended: bool,
}

// === impl FrameStream ===

impl FrameStream {
    pub(crate) fn new(answer: Answer) -> Self {
        let due = Instant::now() + interval(&answer);
        Self { answer, timer: Box::pin(tokio::time::sleep_until(due)), due, sent: 0, ending: None, ended: false }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        loop {
            if let Some(status) = &self.ending {
                let status = status.clone();
                return Poll::Ready(self.answer.frames.pop_front().ok_or(status));
            }
            // Whatever is raised from here on wakes this task again.
            self.answer.session.signal.poll(cx.waker());
            match self.answer.session.order() {
                Some(Order::End(status)) => {
                    self.ending = Some(status);
                    continue;
                }
                Some(Order::Send(notice)) => {
                    self.answer.control(Frame::Notice(v1::Notice { notice: Some(notice) }));
                    continue;
                }
                Some(Order::Rescope(scope)) => {
                    self.answer.rescope(scope);
                    continue;
                }
                None => {}
            }
            if self.has_credit()
                && let Some(frame) = self.answer.frames.pop_front()
            {
                return Poll::Ready(Ok(frame));
            }
            let wake_at = if matches!(self.answer.phase, Phase::Live) { None } else { self.answer.proceed() };
            if !self.answer.frames.is_empty() && self.has_credit() {
                continue;
            }
            if matches!(self.answer.phase, Phase::Live) && self.has_credit() {
                if let Some(piece) = self.answer.cursor.next() {
                    self.answer.push(piece);
                    self.count();
                    self.answer.session.sent(self.answer.cursor.last_read());
                    continue;
                }
                if self.answer.has_caught_up() {
                    continue;
                }
            }
            if self.poll_timer(cx, wake_at).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Counts what the subscriber is sent, and what it is spared.
    fn count(&mut self) {
        let Traffic { events, coalesced } = self.answer.cursor.take_traffic();
        let metrics = &self.answer.inner.metrics;
        if events > 0 {
            metrics.sent_events.inc_by(events);
        }
        if coalesced > 0 {
            metrics.coalesced.inc_by(coalesced);
        }
    }

    /// A subscriber that grants credit is sent no more than it has granted.
    fn has_credit(&self) -> bool {
        let credit = self.answer.credit;
        credit == 0 || self.sent.saturating_sub(self.answer.session.received_bytes()) < credit
    }

    /// Ready if there may be something to do again.
    fn poll_timer(&mut self, cx: &mut Context<'_>, wake_at: Option<Instant>) -> Poll<()> {
        let deadline = wake_at.map_or(self.due, |at| at.min(self.due));
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        if self.timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if Instant::now() < self.due {
            return Poll::Ready(());
        }
        self.due = Instant::now() + interval(&self.answer);
        if !self.has_credit() {
            return self.poll_timer(cx, wake_at);
        }
        if !(matches!(self.answer.phase, Phase::Live) && self.answer.bookmark()) {
            // It waits, or its snapshot cannot end yet: only to show that the stream lives.
            self.answer.control(Frame::Batch(v1::Batch::default()));
        }
        Poll::Ready(())
    }
}

impl http_body::Body for FrameStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<HttpFrame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.poll_bytes(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(bytes)) => {
                self.sent += bytes.len() as u64;
                self.answer.inner.metrics.sent_bytes.inc_by(bytes.len() as u64);
                Poll::Ready(Some(Ok(HttpFrame::data(bytes))))
            }
            Poll::Ready(Err(status)) => {
                self.ended = true;
                self.answer.inner.metrics.error(status.code());
                Poll::Ready(Some(handmade::end(&status)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

impl Drop for FrameStream {
    fn drop(&mut self) {
        self.answer.inner.sessions.close(&self.answer.session, Instant::now());
    }
}

/// Bookmarks of different sessions are due at different times, also if all of them connected at once.
fn interval(answer: &Answer) -> Duration {
    let base = answer.inner.config.bookmark_interval;
    base - base.mul_f64(0.2 * (answer.session.id % 1024) as f64 / 1024.0)
}
