//! What every subscriber of a bus needs: the way up, and an exact copy of what comes down.
//!
//! An [`Uplink`] connects, subscribes, and comes back after whatever happens. The frames that it hands on go into a
//! [`Mirror`], which says what has changed, and where it is exact: at such a position a subscription resumes. Agents and
//! observers use the same two; they differ in the request that they subscribe with, and in what they keep of an object.

mod files;
mod held;
mod item;
mod mirror;
mod uplink;

pub use files::allow_open_files;
pub use held::Held;
pub use item::Item;
pub use mirror::{Change, Effect, Mirror, Mismatch, Nonsense};
pub use uplink::{Advice, Arrival, Channel, Connecting, Connector, Endpoint, Io, MAX_MESSAGE, Tcp, Uplink, advise};
