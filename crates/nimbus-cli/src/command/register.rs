//! `nimbus register`: kinds out of .proto files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use protox::{
    Compiler,
    file::{ChainFileResolver, DescriptorSetFileResolver, GoogleFileResolver, IncludeFileResolver},
};

use crate::{
    client::ClientArguments,
    failure::{Exit, Failure},
    output::Printer,
};

/// Tell the bus what objects look like: every message of a .proto file becomes a kind.
///
/// From then on, specs are checked when they are written, and can be read and written as YAML and JSON. A new version of a
/// kind must be able to read what the old one has written. Files are compiled here; nothing else has to be installed.
///
/// Files may import nimbus/v1/options.proto without having it; fields that name other objects say so with its options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus register demo.proto
  nimbus register -I proto proto/demo/v1/zone.proto --kind demo.v1.Zone
  nimbus register kinds.binpb        # written by protoc --include_imports --descriptor_set_out, or by buf build")]
pub(crate) struct Arguments {
    /// Files in the language of protocol buffers (.proto), or descriptor sets that contain all their imports.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Where imports begin; may be repeated. Without it, where each file is.
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    includes: Vec<PathBuf>,

    /// Only this message is a kind, by its full name; may be repeated. Without it, all messages that are not inside others.
    #[arg(long = "kind", value_name = "NAME")]
    kinds: Vec<String>,

    #[command(flatten)]
    client: ClientArguments,
}

/// What the sources of messages end in.
const SOURCE: &str = "proto";

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let (sources, sets): (Vec<&Path>, Vec<&Path>) = (arguments.files.iter().map(PathBuf::as_path))
        .partition(|file| file.extension().is_some_and(|end| end == SOURCE));
    // All of them are read before anything is sent.
    let mut descriptor_sets = Vec::new();
    if !sources.is_empty() {
        descriptor_sets.push(compile(&sources, &arguments.includes)?);
    }
    for set in sets {
        descriptor_sets.push(read(set)?);
    }
    let mut printer = Printer::lines();
    for descriptor_set in descriptor_sets {
        let request =
            v1::RegisterKindsRequest { descriptor_set: descriptor_set.into(), kinds: arguments.kinds.clone() };
        let answer = client.call(client.publisher().register_kinds(request)).await?;
        if answer.kinds.is_empty() {
            printer.note("nothing is new: the bus knows all of it already")?;
        }
        for kind in answer.kinds {
            printer.line(&format!("{kind} registered"))?;
        }
    }
    printer.flush()
}

/// Compiles sources, with all that they import.
fn compile(files: &[&Path], includes: &[PathBuf]) -> Result<Vec<u8>, Failure> {
    for path in files {
        // Said here, because a compiler looks in many places, and speaks of none of them.
        fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    }
    let beside = files.iter().map(|file| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    });
    let includes: Vec<&Path> =
        if includes.is_empty() { beside.collect() } else { includes.iter().map(PathBuf::as_path).collect() };
    let mut resolver = ChainFileResolver::new();
    includes
        .into_iter()
        .for_each(|folder| resolver.add(IncludeFileResolver::new(folder.to_owned())));
    resolver.add(GoogleFileResolver::new());
    // What schemas may import without having it: options of nimbus.
    let ours = DescriptorSetFileResolver::decode(v1::FILE_DESCRIPTOR_SET).expect("our own descriptors are well-formed");
    resolver.add(ours);
    let mut compiler = Compiler::with_file_resolver(resolver);
    let compiled = compiler
        .include_imports(true)
        .open_files(files)
        .map(|compiler| compiler.encode_file_descriptor_set());
    compiled.map_err(|error| {
        let failure = Failure::new(Exit::Invalid, format!("{error:?}"));
        if error.is_file_not_found() { failure.hint("-I names the folder in which imports begin") } else { failure }
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    match FileDescriptorSet::decode(&*bytes) {
        Ok(set) if !set.file.is_empty() => Ok(bytes),
        _ => {
            let message = format!("{}: neither a .proto file nor a descriptor set", path.display());
            Err(Failure::new(Exit::Invalid, message)
                .hint("protoc --include_imports --descriptor_set_out=FILE writes descriptor sets"))
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot read {}: {error}", path.display()))
}
