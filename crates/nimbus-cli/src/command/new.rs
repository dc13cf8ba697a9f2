//! `nimbus new`: a project to begin with.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{
    failure::Failure,
    new::{CrateName, KindName, Project, Source},
    output::Printer,
};

/// Make a project with a kind, a controller, an agent and a test of both.
///
/// It is a project of its own, which belongs to you and can be anywhere. It needs a Rust toolchain, and no protoc.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus new my-controller
  nimbus new routes/route-controller --kind net.v1.Route")]
pub(crate) struct Arguments {
    /// The folder to make. Its last part is the name of the project.
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// The kind of the objects that people write.
    #[arg(long, value_name = "PACKAGE.NAME", default_value = "demo.v1.Thing")]
    kind: String,

    /// Where the sources of nimbus are [default: where this command was built from].
    #[arg(long, value_name = "PATH", conflicts_with = "git")]
    nimbus: Option<PathBuf>,

    /// A git repository with the sources of nimbus.
    #[arg(long, value_name = "URL")]
    git: Option<String>,
}

/// Two folders up from the sources of this command.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = CrateName::of(&arguments.path)?;
    let kind = KindName::parse(&arguments.kind)?;
    let source = match (&arguments.git, &arguments.nimbus) {
        (Some(url), _) => Source::git(url)?,
        (None, Some(path)) => Source::tree(path)?,
        (None, None) => Source::built_from(Path::new(BUILT_FROM))?,
    };
    let project = Project { name, kind, source };
    project.write(&arguments.path)?;
    let mut printer = Printer::lines();
    printer.raw(&project.next_steps(&arguments.path))?;
    printer.flush()
}
