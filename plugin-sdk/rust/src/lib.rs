//! Scheduler plugins for Berth, made of plain Rust functions: the crate speaks
//! the plugin protocol, mirrors the cluster generation by generation, packs
//! answers, opens spans, reports health and metrics, and stops gracefully.
//!
//! A whole plugin:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use berth_plugin_sdk::{Node, Plugin, Pod, Reason, labels};
//!
//! const OTHER_TEAM: Reason = Reason::new("node(s) belong to another team");
//!
//! struct TeamNodes;
//!
//! impl TeamNodes {
//!     fn filter(&self, pod: &Pod, node: &Node) -> Result<(), Reason> {
//!         match labels(node).get("team") {
//!             Some(team) if labels(pod).get("team") != Some(team) => Err(OTHER_TEAM),
//!             _ => Ok(()),
//!         }
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     berth_plugin_sdk::main(Plugin::new("team-nodes", TeamNodes).filter(TeamNodes::filter))
//! }
//! ```
//!
//! What a [`Plugin`] is given functions for is what it announces to the
//! scheduler. They are called one at a time, each with the plugin's state, so
//! what they share needs no locks of its own; one that has to wait for something
//! outside answers with [`Reply::later`]. A panic fails the attempt with its
//! text, never the process.
//!
//! The module [`testing`] runs a plugin without a scheduler.

mod address;
mod arguments;
mod binding;
mod bits;
mod call;
mod capabilities;
mod clock;
mod core;
mod errors;
mod events;
mod finding;
mod following;
mod groups;
mod grpc;
mod log;
mod metrics;
mod mirror;
mod nodes;
mod objects;
mod ordering;
mod outcomes;
mod overlays;
mod pages;
mod placements;
mod plugin;
mod pod_groups;
mod pod_memory;
mod program;
mod queueing;
mod requeue;
mod resources;
mod schema;
mod serving;
mod session;
mod steps;
mod sync;
pub mod testing;
mod trace_file;
mod tracing;
mod ttrpc;
mod vectors;

#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub(crate) mod pb {
    include!("generated/berth.plugin.v1.rs");
}

pub use arguments::{ArgumentError, Arguments};
pub use clock::{Clock, Timer};
pub use events::{Action, Event, EventInterest};
pub use k8s_openapi;
pub use k8s_openapi::api::core::v1::{Container, Node, Pod};
pub use metrics::{Metric, MetricKind};
pub use nodes::Nodes;
pub use objects::{ObjectKey, PlacedPod};
pub use outcomes::{
    Call, Code, CycleOutcome, MetadataPatch, Nomination, Normalization, Outcome, Permission, PodKey, PodStage,
    Profile, Reason, Reply, SortKey, Status, Verdicts,
};
pub use plugin::{Plugin, Point, WatchedResource};
pub use pod_groups::{GroupPreemption, Placement, PlacementProgress, PodGroup, ProposedPlacement};
pub use program::main;
pub use requeue::Requeue;
pub use resources::{allocatable, amount, annotations, labels, request};
pub use schemars;
pub use serde_json;
pub use serving::{Running, ServeError, Server, Tls};
