//! Headers of requests: what fields must say, and what they must not (RFC 9113, section 8).

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header,
    uri::{Authority, PathAndQuery, Scheme},
};

use crate::hpack::OVERHEAD;

/// Headers, or trailers, as they come out of a block.
#[derive(Debug)]
pub(crate) struct Builder {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: Option<PathAndQuery>,
    fields: HeaderMap,
    /// There is a field that is not a pseudo-header: no pseudo-header may follow.
    has_fields: bool,
    has_pseudo: bool,
    is_malformed: bool,
    left: usize,
    is_too_large: bool,
}

/// Why headers are no request, or no trailers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    Malformed,
    TooLarge,
}

/// What belongs to a connection, which HTTP/2 says in other ways.
const OF_CONNECTIONS: [HeaderName; 3] = [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE];
const OF_CONNECTIONS_TOO: [&str; 2] = ["keep-alive", "proxy-connection"];

// === impl Builder ===

impl Builder {
    /// For headers of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            method: None,
            scheme: None,
            authority: None,
            path: None,
            fields: HeaderMap::new(),
            has_fields: false,
            has_pseudo: false,
            is_malformed: false,
            left: most,
            is_too_large: false,
        }
    }

    /// Takes a field. Beyond the limit nothing is kept.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        self.is_too_large |= size > self.left;
        self.left = self.left.saturating_sub(size);
        if self.is_too_large || self.is_malformed {
            return;
        }
        let taken = if name.first() == Some(&b':') { self.pseudo(name, value) } else { self.ordinary(name, value) };
        self.is_malformed |= taken.is_none();
    }

    pub(crate) fn into_request(self) -> Result<Request<()>, Bad> {
        self.check()?;
        let is_connect = self.method == Some(Method::CONNECT);
        let mut uri = http::uri::Parts::default();
        (uri.scheme, uri.authority, uri.path_and_query) = (self.scheme, self.authority, self.path);
        let complete = if is_connect {
            uri.scheme.is_none() && uri.authority.is_some() && uri.path_and_query.is_none()
        } else {
            uri.scheme.is_some() && uri.path_and_query.is_some()
        };
        if !complete {
            return Err(Bad::Malformed);
        }
        if uri.authority.is_none() {
            // Who is meant is in `host` then; a path alone is a URI, too.
            uri.scheme = None;
        }
        let mut request = Request::new(());
        *request.method_mut() = self.method.ok_or(Bad::Malformed)?;
        *request.uri_mut() = Uri::from_parts(uri).map_err(|_| Bad::Malformed)?;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.fields;
        Ok(request)
    }

    pub(crate) fn into_trailers(self) -> Result<HeaderMap, Bad> {
        self.check()?;
        if self.has_pseudo { Err(Bad::Malformed) } else { Ok(self.fields) }
    }

    fn check(&self) -> Result<(), Bad> {
        match () {
            () if self.is_malformed => Err(Bad::Malformed),
            () if self.is_too_large => Err(Bad::TooLarge),
            () => Ok(()),
        }
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        self.has_pseudo = true;
        if self.has_fields {
            return None;
        }
        match name {
            b":method" => once(&mut self.method, Method::from_bytes(value).ok()?),
            b":scheme" => once(&mut self.scheme, Scheme::try_from(value).ok()?),
            b":authority" => once(&mut self.authority, Authority::try_from(value).ok()?),
            b":path" if value.first().is_some_and(|first| matches!(first, b'/' | b'*')) => {
                once(&mut self.path, PathAndQuery::try_from(value).ok()?)
            }
            _ => None,
        }
    }

    fn ordinary(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        self.has_fields = true;
        if name.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let name = HeaderName::from_bytes(name).ok()?;
        let value = HeaderValue::from_bytes(value).ok()?;
        let of_connections = OF_CONNECTIONS.contains(&name) || OF_CONNECTIONS_TOO.contains(&name.as_str());
        if of_connections || (name == header::TE && value != "trailers") {
            return None;
        }
        self.fields.append(name, value);
        Some(())
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    let is_first = slot.is_none();
    *slot = Some(value);
    is_first.then_some(())
}
