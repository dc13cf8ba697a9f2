//! Compiles the kinds of the demo with protox, so that no protoc binary is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["demo/v1/policies.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("demo_v1.bin"), descriptors.encode_to_vec())?;
    prost_build::Config::new().enable_type_names().compile_fds(descriptors)?;
    Ok(())
}
