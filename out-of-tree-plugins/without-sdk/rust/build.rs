//! Generates the stubs from the protocol's files, with a protoc that comes as a crate.

use std::path::Path;

const FILES: [&str; 4] = ["common", "identity", "scheduling", "state"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto = Path::new("../../../proto");
    let files = FILES.map(|name| proto.join(format!("berth/plugin/v1/{name}.proto")));
    let mut config = tonic_prost_build::Config::new();
    config.protoc_executable(protoc_bin_vendored::protoc_bin_path()?);
    tonic_prost_build::configure()
        .build_client(false)
        .generate_default_stubs(true)
        .compile_with_config(
            config,
            &files,
            &[proto.into(), protoc_bin_vendored::include_path()?],
        )?;
    Ok(())
}
