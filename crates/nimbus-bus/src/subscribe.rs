//! Subscriptions: how each is answered, and the response body that sends its frames.
//!
//! The body hands the transport bytes that many subscribers share. It is asked for more only when the transport has
//! room, and then gives what has accumulated since; a subscriber that does not read is a cursor that does not move.

mod answer;
mod stream;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use nimbus_wire::v1::bus_server::BusServer;
use tonic::{Status, body::Body, metadata::MetadataMap, server::NamedService};

use self::{answer::Answer, stream::FrameStream};
use crate::{
    handmade::{self, Answering},
    identity::Identity,
    inner::Inner,
    outgoing::Shared,
    reading::Reading,
};

/// `nimbus.v1.Bus`: subscriptions are answered here, all other calls by generated code.
#[derive(Clone)]
pub(crate) struct BusService {
    inner: Arc<Inner>,
    others: BusServer<Reading>,
}

/// Subscriptions, as requests name them.
pub(crate) const PATH: &str = "/nimbus.v1.Bus/Subscribe";

// === impl BusService ===

impl BusService {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        let others = BusServer::new(Reading(inner.clone()))
            .max_decoding_message_size(inner.config.limits.message_bytes)
            .max_encoding_message_size(usize::MAX);
        Self { inner, others }
    }
}

impl NamedService for BusService {
    const NAME: &'static str = <BusServer<Reading> as NamedService>::NAME;
}

impl tower::Service<http::Request<Body>> for BusService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <BusServer<Reading> as tower::Service<http::Request<Body>>>::poll_ready(&mut self.others, cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != PATH {
            return self.others.call(request);
        }
        let inner = self.inner.clone();
        Box::pin(async move {
            let answered = handmade::asked(&inner, request).await.and_then(|(headers, request)| {
                let identity = Identity::of(&MetadataMap::from_headers(headers));
                Answer::to(inner, &identity, &request).map(FrameStream::new)
            });
            Ok(answered.map_or_else(Status::into_http, |stream| {
                let mut response = handmade::answer(stream);
                response.extensions_mut().insert(Shared);
                response
            }))
        })
    }
}

#[cfg(test)]
mod tests;
