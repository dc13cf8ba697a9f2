//! Tests of lines.

use nimbus_agent::Connector as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::demo::line::Line;

#[tokio::test]
async fn a_line_that_is_cut_ends_its_connection_at_both_ends_and_works_again_when_it_is_mended() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = Line::default();
    let mut near = line.connect("127.0.0.1", port).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    far.write_all(b"hello").await.unwrap();
    let mut buffer = [0; 5];
    near.read_exact(&mut buffer).await.unwrap();
    assert_eq!((&buffer, line.traffic().bytes), (b"hello", 5));

    line.cut();
    assert!(near.read(&mut buffer).await.is_err());
    drop(near);
    assert_eq!(far.read(&mut buffer).await.unwrap(), 0);
    assert!(line.connect("127.0.0.1", port).await.is_err());

    line.mend();
    let mut near = line.connect("127.0.0.1", port).await.unwrap();
    near.write_all(b"again").await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    far.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"again");
}
