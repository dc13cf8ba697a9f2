//! The `nimbus` command.

use std::process::ExitCode;

/// The allocator of the system keeps half as much again for each connection.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A thread looks for what has come on sockets when it has nothing else to do, or after so many turns of tasks. While there is
/// always something to do, whoever says little would wait for sixty-one, which is the default.
const TURNS: u32 = 8;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().event_interval(TURNS).build();
    runtime.expect("a process may have threads").block_on(nimbus_cli::main())
}
