//! Runs a plugin without a scheduler: [`Host`] speaks the scheduler's side of the
//! protocol over a real socket, with a cluster of its own to show.
//!
//! ```no_run
//! use berth_plugin_sdk::testing::{Host, node, pod};
//! # fn plugin() -> berth_plugin_sdk::Plugin<()> { berth_plugin_sdk::Plugin::new("team-nodes", ()) }
//!
//! let mut host = Host::run(plugin(), [node("n0").label("team", "red")]);
//!
//! assert!(!host.filter(pod("p").label("team", "blue")).passes("n0"));
//! ```

mod builders;
mod cluster;
mod groups;
mod host;

pub use builders::{NodeBuilder, PodBuilder, node, pod};
pub use cluster::Cluster;
pub use host::{Host, PROFILE, Verdict};
