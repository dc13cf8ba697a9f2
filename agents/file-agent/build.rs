//! Compiles the agent's kind with protox, so that no protoc binary is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["nimbus/file/v1/file.proto"], ["proto"])?;
    prost_build::Config::new()
        .enable_type_names()
        .bytes(["."])
        // Files hold secrets: what is printed of one is decided by hand.
        .skip_debug(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
