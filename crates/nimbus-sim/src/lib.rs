//! A deterministic simulation of everything: one seed decides what happens, a model says what may be seen.
//!
//! The bus, its store and the agents are the real ones, on [turmoil]'s network and clock. Publishers, readers and rivals
//! for a lease are written here, from the description of the protocol. From the seed follows what they do, what fails
//! and when, and even in which order hash maps are walked through, so that a run can be repeated.
//!
//! | property | what is checked |
//! |---|---|
//! | Converges | when nothing fails any more, everybody has exactly what they should; digests agree at every bookmark |
//! | Ordered | per object, nobody ever sees an older write after a newer one; positions do not fall |
//! | Unique | nothing is sent, or is a change, twice |
//! | Atomic | objects that are written together are seen together, at every position |
//! | Reliable | what is acknowledged is there, as it was written, until it is overwritten; answers say what happened |
//! | Resumable | only who has a position of this history gets a delta |
//! | Bookmarkable | at every position, a reader holds exactly what was there at that revision |
//! | Filtered | nobody is sent what is for others |
//! | RefOrder | no handler sees an object before what it needs, nor the removal of what is needed; groups are in order |
//! | NoFalseDelete | nothing is removed that was not deleted and is not for others |
//! | Quiet | publishing what is there changes nothing; a restart of everything moves nothing |
//! | Fenced | older instances of a publisher, and holders of lost leases, write nothing |
//! | Serial | calls of handlers for one object never overlap |
//! | Reactions | while nothing fails, each change of an object is one call of its reactor, with what it last dealt with |
//! | Isolated | nothing panics |

mod case;
mod children;
mod faults;
mod hosts;
mod machine;
mod minimise;
mod model;
mod net;
mod once;
mod outcome;
mod policies;
mod real_clock;
mod run;
mod setup;
mod world;

pub use case::Case;
pub use children::{Report, Tally, VIOLATION, each};
pub use minimise::{Smallest, minimise};
pub use once::{once, rounds};
pub use outcome::Outcome;
pub use real_clock::real_clock;
pub use run::Figures;
