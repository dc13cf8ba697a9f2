//! Writes the corpus: `cargo run -p nimbus-fuzz -- tests/fuzz/corpus`.

use std::{env, path::Path, process::ExitCode};

#[allow(clippy::print_stderr, clippy::print_stdout, reason = "the place where the command speaks")]
fn main() -> ExitCode {
    let Some(directory) = env::args_os().nth(1) else {
        eprintln!("usage: nimbus-fuzz DIRECTORY");
        return ExitCode::from(2);
    };
    match nimbus_fuzz::corpus::write(Path::new(&directory)) {
        Ok(files) => {
            println!("{files} files");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("nimbus-fuzz: {}: {error}", Path::new(&directory).display());
            ExitCode::FAILURE
        }
    }
}
