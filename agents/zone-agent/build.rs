//! Compiles the agent's kind with protox, so that no protoc binary is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["demo/v1/policies.proto"], ["proto"])?;
    prost_build::Config::new().enable_type_names().compile_fds(descriptors)?;
    Ok(())
}
