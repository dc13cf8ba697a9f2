//! Running a seed so that it always runs in the same way.

use std::{
    env,
    hash::{BuildHasher as _, RandomState},
    io, panic,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rand::{
    Rng as _, SeedableRng as _, TryRng as _,
    rngs::{StdRng, SysRng},
};
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
    // Before the system's numbers follow from the seed: a name that is taken by another process costs one of them.
    let directory = scratch()?;
    mad_turmoil::rand::set_rng(StdRng::seed_from_u64(case.seed));
    let (case, path) = (case.clone(), directory.path().to_owned());
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::Relaxed);
        before(info);
    }));
    // Hash maps of a thread begin with numbers of its own.
    let simulation = move || {
        check_numbers(case.seed)?;
        run(&case, path, go_on)
    };
    let ran = thread::Builder::new().name("simulation".into()).spawn(simulation)?.join();
    let mut outcome = ran.unwrap_or_else(|_| Err(anyhow::anyhow!("the simulation panicked")))?;
    if PANICKED.load(Ordering::Relaxed) {
        outcome
            .violation
            .get_or_insert_with(|| "Isolated: something panicked, see above".to_owned());
    }
    Ok(outcome)
}

/// Files that nobody has to keep are best in memory, if whoever started this has not said where they are to be.
pub(crate) fn scratch() -> io::Result<tempfile::TempDir> {
    if env::var_os("TMPDIR").is_some() {
        return tempfile::tempdir();
    }
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

/// Makes sure that whatever this thread takes from the system follows from the seed: what the standard library takes for
/// its hash maps, and what others ask for through the crate `rand`. The latter decide at their first call whether the system
/// has such numbers at all, and so it is made here.
fn check_numbers(seed: u64) -> anyhow::Result<()> {
    let mut expected = StdRng::seed_from_u64(seed);
    let mut numbers = [[0; 16]; 2];
    expected.fill_bytes(&mut numbers[0]);
    SysRng.try_fill_bytes(&mut numbers[1])?;
    anyhow::ensure!(numbers[0] == numbers[1], "the numbers of the system do not follow from the seed");
    // Its first hash map costs a thread as many bytes.
    let _ = RandomState::new().hash_one(());
    expected.fill_bytes(&mut numbers[0]);
    let next = expected.next_u64();
    anyhow::ensure!(mad_turmoil::rand::get_rng().next_u64() == next, "hash maps do not follow from the seed");
    Ok(())
}
