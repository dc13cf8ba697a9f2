//! Compiles the wire contract with protox, so that no protoc binary is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 4] =
    ["nimbus/v1/object.proto", "nimbus/v1/bus.proto", "nimbus/v1/publisher.proto", "nimbus/v1/fleet.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("nimbus_v1.bin"), descriptors.encode_to_vec())?;

    tonic_prost_build::configure()
        // Maps in key order: equal objects have equal bytes, in every process.
        .btree_map(".")
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
