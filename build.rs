//! Compiles the wire contract with protox, so that no protoc binary is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 7] = [
    "nimbus/v1/object.proto",
    "nimbus/v1/bus.proto",
    "nimbus/v1/publisher.proto",
    "nimbus/v1/fleet.proto",
    "nimbus/v1/lease.proto",
    "nimbus/v1/control.proto",
    "nimbus/v1/options.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("nimbus_v1.bin"), descriptors.encode_to_vec())?;

    let mut config = tonic_prost_build::Config::new();
    // Some of these messages are kinds, or statuses.
    config.enable_type_names();
    tonic_prost_build::configure()
        // Maps in key order: equal objects have equal bytes, in every process.
        .btree_map(".")
        .bytes(".")
        .compile_fds_with_config(descriptors, config)?;
    Ok(())
}
