//! Writes the SDK's stubs into a folder, from what protoc makes of the .proto files.
//!
//!     berth-stubs DESCRIPTORS FOLDER

use std::error::Error;
use std::{env, fs};

use prost::Message;
use prost_types::FileDescriptorSet;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let (Some(descriptors), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("two arguments are needed: DESCRIPTORS FOLDER".into());
    };
    let mut files = FileDescriptorSet::decode(fs::read(descriptors)?.as_slice())?;
    files.file.retain(|file| !file.name().ends_with("/recording.proto"));
    tonic_prost_build::configure()
        // Vectors and objects share the memory of the message that brought them.
        .bytes(".")
        .btree_map(".")
        .out_dir(folder)
        .compile_fds(files)?;
    Ok(())
}
