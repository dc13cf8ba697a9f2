//! The simulation as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let seed: u64 = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or_default();
    let outcome = nimbus_sim::once(seed).unwrap();
    println!("{outcome}");
    for line in &outcome.story {
        println!("{line}");
    }
    if let Some(v) = &outcome.violation {
        println!("{v}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
