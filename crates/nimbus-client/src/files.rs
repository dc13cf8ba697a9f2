//! How many files a process may have open, of which every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows this process, and those that it starts, as many open files as it may have, and says how many that are; `None` is
/// any number. Often a process begins with a thousand, which whoever has a connection for each agent soon has used up.
pub fn allow_open_files() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let all = Rlimit { current: before.maximum, maximum: before.maximum };
    // Where the system does not do it, what there was is still there.
    setrlimit(Resource::Nofile, all).map_or(before.current, |()| all.current)
}
