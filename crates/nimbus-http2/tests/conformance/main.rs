//! What RFC 9113 asks of a server, section by section, with frames that no library would send, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod cases;
mod client;
mod going;
mod patience;
mod peer;
