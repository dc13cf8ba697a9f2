//! Sockets to which many may come at the same time.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait until they are taken. A whole fleet comes at once when a bus is back, and whoever finds no
/// room tries again only after one second, then after three, then after seven. The system may allow fewer
/// (`net.core.somaxconn`).
const WAITING: u32 = 65_535;

/// Listens on an address, which may be that of a program that has just ended.
pub(crate) fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(WAITING)
}
