//! Room for the connections of all agents.

use nimbus_client::allow_open_files;

/// Beside the connections: the store, the terminal, the controller, the operator and those who look on.
const OTHERS: u64 = 200;

/// Makes room for so many agents, here and in the bus, which inherits it.
pub(crate) fn allow(agents: u32) -> Result<(), String> {
    let wanted = u64::from(agents) + OTHERS;
    match allow_open_files() {
        Some(allowed) if allowed < wanted => {
            let hint = format!("ulimit -n {wanted}, or --agents {}", allowed.saturating_sub(OTHERS));
            Err(format!("{agents} agents need {wanted} open files, and {allowed} are allowed here (hint: {hint})"))
        }
        _ => Ok(()),
    }
}
