//! An HTTP/2 server for many long streams whose bytes are shared.
//!
//! [`Core`] is a connection without what it runs on: bytes and the time go in, and what is to be written and done comes
//! out. [`Connection`] drives one over a socket. It is **one future**: it reads, polls the calls that were woken and
//! their bodies, and writes. A body is asked for more only when the socket has taken what there was; its bytes are
//! never copied, and everything that has come together goes out in one system call. A connection on which nothing
//! happens holds no buffers.
//!
//! Connections take turns: one reads and writes a quarter of a megabyte at a time. Those that have more to do than one turn, and
//! those that have news for answers that go on and on, stand in lines, of which only a few are woken at once. So whoever asks for
//! something need not wait for all who have much to do, or are told something.
//!
//! [`Drain`] ends connections in good order. There is no client, no HTTP/1, no TLS, and no push.

mod bucket;
mod config;
mod connection;
mod core;
mod credit;
mod drain;
mod frame;
mod head;
mod hpack;
mod input;
mod line;
mod output;
mod reason;
mod stream;
mod streams;

pub use self::{
    config::Config,
    connection::{Connection, Ended, Interrupted, RequestBody},
    core::{Core, Receive},
    drain::Drain,
    output::Output,
    reason::{Fatal, Reason},
};
