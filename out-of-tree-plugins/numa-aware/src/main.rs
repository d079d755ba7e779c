//! Numa-aware places pods on nodes where one NUMA node has room for them.

mod filtering;
mod fingerprint;
mod least_numa;
mod node_record;
mod plugin;
mod requests;
mod scoring;
mod settings;
#[cfg(test)]
mod tests;
mod topology;

use std::process::ExitCode;

fn main() -> ExitCode {
    berth_plugin_sdk::main(plugin::plugin())
}
