//! HTTP/2 without gRPC's manners.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::{SendStream, client};
use http::{Request, StatusCode};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tonic::Status;

use crate::wait;

/// A call of which the test decides every byte.
pub(crate) struct RawCall {
    /// Where bytes of the request go.
    pub(crate) body: SendStream<Bytes>,
    response: client::ResponseFuture,
    /// Keeps the connection.
    _connection: client::SendRequest<Bytes>,
}

/// Sends the headers of a call, on a connection of its own.
pub(crate) async fn open(address: SocketAddr, path: &str, extra: &[(&str, String)], end: bool) -> RawCall {
    let stream = TcpStream::connect(address).await.unwrap();
    let (connection, driver) = client::handshake(stream).await.unwrap();
    // It ends with the connection, and the connection with the call.
    tokio::spawn(driver);
    let mut connection = connection.ready().await.unwrap();
    let mut request = Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in extra {
        request = request.header(*name, value);
    }
    let (response, body) = connection.send_request(request.body(()).unwrap(), end).unwrap();
    RawCall { body, response, _connection: connection }
}

/// Writes bytes to a connection of its own, and reads until the bus closes it.
pub(crate) async fn talk(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset ends a connection just as well.
    drop(wait::for_it("the bus to close a connection", stream.read_to_end(&mut answer)).await);
    answer
}

/// The same where the answer may come before all bytes are written.
pub(crate) async fn talk_back(address: SocketAddr, bytes: Vec<u8>) -> Vec<u8> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let writing = tokio::spawn(async move {
        // Whoever has heard enough need not read the rest.
        drop(writer.write_all(&bytes).await);
        writer
    });
    let mut answer = Vec::new();
    drop(wait::for_it("the bus to close a connection", reader.read_to_end(&mut answer)).await);
    writing.abort();
    answer
}

/// A message with gRPC's prefix, which may claim any length.
pub(crate) fn message(claimed: u32, bytes: &[u8]) -> Bytes {
    [&[0][..], &claimed.to_be_bytes(), bytes].concat().into()
}

// === impl RawCall ===

impl RawCall {
    /// What the call comes to in the end: the status of gRPC, which may come before everything else or after it.
    pub(crate) async fn outcome(self) -> Result<(), Status> {
        wait::for_it("the end of a call", async {
            let response = self.response.await.unwrap();
            let mut status = Status::from_header_map(response.headers());
            let mut body = response.into_body();
            while let Some(data) = body.data().await {
                body.flow_control().release_capacity(data.unwrap().len()).unwrap();
            }
            if let Some(trailers) = body.trailers().await.unwrap() {
                status = status.or_else(|| Status::from_header_map(&trailers));
            }
            status.map_or(Ok(()), Err)
        })
        .await
    }

    /// What HTTP has to say about the call.
    pub(crate) async fn http_outcome(self) -> Result<StatusCode, h2::Error> {
        let response = wait::for_it("the answer to a call", self.response).await?;
        Ok(response.status())
    }
}
