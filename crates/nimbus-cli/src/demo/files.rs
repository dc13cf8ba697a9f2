//! Room for the connections of all agents.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Beside the connections: the store, the terminal, the controller, the operator and those who look on.
const OTHERS: u64 = 200;

/// Makes room for so many agents, here and in the bus, which inherits it.
pub(crate) fn allow(agents: u32) -> Result<(), String> {
    let wanted = u64::from(agents) + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if let Some(maximum) = maximum.filter(|maximum| *maximum < wanted) {
        let hint = format!("--agents {}", maximum.saturating_sub(OTHERS));
        return Err(format!("{agents} agents need {wanted} open files, and {maximum} are allowed here (hint: {hint})"));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(|error| format!("cannot allow {wanted} open files: {error} (hint: ulimit -n {wanted})"))
}
