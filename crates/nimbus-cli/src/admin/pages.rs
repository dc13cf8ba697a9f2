//! What is told at which path.

use std::sync::{Arc, OnceLock};

use http_body_util::Full;
use hyper::{
    Method, Response, StatusCode,
    body::Bytes,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
};
use nimbus_bus::Bus;
use prometheus_client::{encoding::text, registry::Registry};

/// What is told about a bus, also before there is one.
#[derive(Debug)]
pub(crate) struct Pages {
    registry: Registry,
    bus: OnceLock<Bus>,
}

type Page = Response<Full<Bytes>>;

const INDEX: &str = "\
/livez    200 while this process works; 503 and the reason if only a restart helps
/readyz   200 when every kind is complete; 503 and what is missing, one per line
/metrics  for Prometheus
";

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

// === impl Pages ===

impl Pages {
    /// What these metrics say; the bus comes later.
    pub(crate) fn new(registry: Registry) -> Self {
        Self { registry, bus: OnceLock::new() }
    }

    /// The bus is there.
    pub(crate) fn set(&self, bus: Bus) {
        // There is only one.
        let _ = self.bus.set(bus);
    }

    /// The answer to a request.
    pub(crate) async fn answer(self: Arc<Self>, method: Method, path: String) -> Page {
        let tell: fn(&Self) -> Page = match &*path {
            "/" => |_| page(StatusCode::OK, PLAIN, INDEX.to_owned()),
            "/livez" => Self::livez,
            "/readyz" => Self::readyz,
            "/metrics" => Self::metrics,
            _ => |_| {
                page(StatusCode::NOT_FOUND, PLAIN, "there is no such page (hint: / lists what there is)\n".to_owned())
            },
        };
        if !matches!(method, Method::GET | Method::HEAD) {
            let text = "only GET and HEAD, nothing can be changed here\n".to_owned();
            let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        // To look at ten thousand agents takes longer than a worker of the runtime should be held up.
        let told = tokio::task::spawn_blocking(move || tell(&self)).await;
        told.unwrap_or_else(|error| page(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")))
    }

    fn livez(&self) -> Page {
        match self.bus.get().and_then(|bus| bus.store().failure()) {
            None => page(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            Some(failure) => page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("store: {failure}\n")),
        }
    }

    fn readyz(&self) -> Page {
        let Some(bus) = self.bus.get() else {
            return page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "store: it is being opened\n".to_owned());
        };
        let missing: String = bus.unready().iter().map(|missing| format!("{missing}\n")).collect();
        match &*missing {
            "" => page(StatusCode::OK, PLAIN, "ready\n".to_owned()),
            _ => page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, missing),
        }
    }

    fn metrics(&self) -> Page {
        if let Some(bus) = self.bus.get() {
            bus.observe();
        }
        let mut metrics = String::new();
        match text::encode(&mut metrics, &self.registry) {
            Ok(()) => page(StatusCode::OK, OPEN_METRICS, metrics),
            Err(error) => page(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")),
        }
    }
}

fn page(status: StatusCode, content_type: HeaderValue, text: String) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(text)));
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, content_type);
    page
}
