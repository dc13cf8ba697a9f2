//! Running a seed so that it always runs in the same way.

use std::{
    panic,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rand::{SeedableRng as _, rngs::StdRng};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{
    case::Case,
    outcome::Outcome,
    run::{Figures, run},
};

/// Set when something has panicked, wherever that was: the runtime would hide it.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Seconds of a processor. A case takes a few of them; one that takes so many has no end, and the system ends it.
const LONGEST: u64 = 300;

/// Runs everything that follows from a seed. A process can do this once: what the standard library and the runtime take
/// from the system when they start is made to follow from the seed, and cannot be taken back.
///
/// # Errors
/// If there is no place for files.
///
/// # Panics
/// If it is called for the second time.
pub fn once(case: &Case) -> anyhow::Result<Outcome> {
    let limit = Rlimit { current: Some(LONGEST), maximum: Some(LONGEST) };
    setrlimit(Resource::Cpu, limit)?;
    rounds(case, |_| false)
}

/// The same, and everything fails again and again for as long as `go_on` says.
///
/// # Errors
/// As [`once`].
///
/// # Panics
/// As [`once`].
pub fn rounds(case: &Case, go_on: impl FnMut(&Figures) -> bool + Send + 'static) -> anyhow::Result<Outcome> {
    mad_turmoil::rand::set_rng(StdRng::seed_from_u64(case.seed));
    let case = case.clone();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::Relaxed);
        before(info);
    }));
    // Hash maps of a thread begin with numbers of its own.
    let ran = thread::Builder::new().name("simulation".into()).spawn(move || run(&case, go_on))?.join();
    let mut outcome = ran.unwrap_or_else(|_| Err(anyhow::anyhow!("the simulation panicked")))?;
    if PANICKED.load(Ordering::Relaxed) {
        outcome
            .violation
            .get_or_insert_with(|| "Isolated: something panicked, see above".to_owned());
    }
    Ok(outcome)
}
