//! Attacks on a bus in a process of its own, for a moment each. `nimbus-testkit hostile` does the same for longer, with figures.

use std::process::{Command, Output};

use crate::server::binary;

/// The bounds on memory, and that the honest are in sync, served and see no error, hold however slow the machine is; latencies are
/// not judged here.
#[test]
fn attacks_of_every_sort_neither_grow_the_bus_nor_disturb_the_honest() {
    let testkit = binary().with_file_name("nimbus-testkit");
    assert!(testkit.exists(), "{} is missing (hint: cargo build -p nimbus-testkit, or tests/run)", testkit.display());
    let arguments =
        ["hostile", "--seconds", "1", "--connections", "1000", "--max-slowdown", "0", "--any-volume", "--nimbus"];
    let Output { status, stdout, stderr } = Command::new(testkit).args(arguments).arg(binary()).output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{said}\n{wrong}");
    assert!(said.ends_with("all bounds held\n"), "{said}");
    // Each of seventeen, and the last line.
    let count = |verdict| said.matches(verdict).count();
    assert_eq!(count(" held\n") + count(" weak\n"), 17 + 1, "an attack is missing: {said}");
    assert!(count(" held\n") > 8, "what most of them proved is nothing: {said}");
}
