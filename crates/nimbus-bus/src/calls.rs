//! Calls: what becomes of a request, whichever service it is for.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Request, Response};
use nimbus_http2::RequestBody;
use tonic::{Code, Status, body::Body, service::Routes};
use tower::Service as _;

use crate::{
    fault,
    inner::Inner,
    metrics::Metrics,
    subscribe::{self, BusService},
};

/// All services, with what holds for every call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Calls(Arc<Services>);

struct Services {
    inner: Arc<Inner>,
    /// Subscriptions go past the routes: thousands of them stay for long, and each would keep what routing takes.
    bus: BusService,
    routes: Routes,
}

/// How long a caller waits for an answer.
const TIMEOUT: &str = "grpc-timeout";

// === impl Calls ===

impl Calls {
    pub(crate) fn new(inner: Arc<Inner>, routes: Routes) -> Self {
        Self(Arc::new(Services { bus: BusService::new(inner.clone()), inner, routes }))
    }

    /// Answers a call.
    pub(crate) fn answer(&self, request: Request<RequestBody>) -> impl Future<Output = Response<Body>> + Send + use<> {
        let services = self.0.clone();
        async move {
            let timeout = timeout(request.headers());
            let request = services.inner.incoming.watch(request);
            let answering = async {
                let answered = if request.uri().path() == subscribe::PATH {
                    services.bus.clone().call(request).await
                } else {
                    services.routes.clone().call(request).await
                };
                answered.unwrap_or_else(|never| match never {})
            };
            let response = match timeout {
                None => answering.await,
                Some(timeout) => tokio::time::timeout(timeout, answering).await.unwrap_or_else(|_| {
                    Status::deadline_exceeded(format!("there was no answer within {timeout:?}, as grpc-timeout says"))
                        .into_http()
                }),
            };
            services.inner.outgoing.hold(counted_error(&services.inner.metrics, response))
        }
    }
}

/// How long the caller waits: up to eight digits, and a unit. What cannot be read is ignored.
fn timeout(headers: &HeaderMap<HeaderValue>) -> Option<Duration> {
    let text = headers.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 60 * 60),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Counts calls that failed. The transport says `OUT_OF_RANGE` of a message that is larger than we take; it is a limit like
/// any other.
fn counted_error(metrics: &Metrics, response: Response<Body>) -> Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::OutOfRange => {
            metrics.refuse("message_bytes");
            metrics.error(Code::ResourceExhausted);
            fault::full("message_bytes", status.message().to_owned()).into_http()
        }
        Some(status) => {
            metrics.error(status.code());
            response
        }
        None => response,
    }
}

#[cfg(test)]
mod tests;
