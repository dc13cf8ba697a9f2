//! The `nimbus` command.

use std::process::ExitCode;

/// The allocator of the system keeps half as much again for each connection.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    nimbus_cli::main()
}
