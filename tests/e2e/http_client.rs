//! A client of plain HTTP/1.1, as monitors have one.

use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::wait;

/// An answer, with all of its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// Asks for a page, on a connection of its own.
pub(crate) async fn get(address: &str, path: &str) -> Answer {
    ask(address, Method::GET, path).await
}

/// Asks for a page by any method.
pub(crate) async fn ask(address: &str, method: Method, path: &str) -> Answer {
    let answer = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut connection, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        // It ends with the connection, which is for one request.
        tokio::spawn(driver);
        let request = Request::builder().method(method).uri(path).header("host", address);
        let response = connection.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body: String::from_utf8(body.into()).unwrap() }
    };
    wait::for_it("an answer over HTTP", answer).await
}
