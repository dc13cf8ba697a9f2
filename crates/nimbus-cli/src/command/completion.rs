//! `nimbus completion`: what a shell needs in order to complete commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{failure::Failure, output::Printer};

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(nimbus completion bash)
  nimbus completion zsh > \"${fpath[1]}/_nimbus\"
  nimbus completion fish > ~/.config/fish/completions/nimbus.fish")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run<C: CommandFactory>(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut C::command(), "nimbus", &mut script);
    let mut printer = Printer::lines();
    printer.raw(&String::from_utf8_lossy(&script))?;
    printer.flush()
}
