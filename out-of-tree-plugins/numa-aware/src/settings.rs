//! The plugin's arguments, as `NodeResourceTopologyMatchArgs` has them.
// Source: apis/config/types.go and v1/defaults.go (scheduler-plugins, v0.35).

use berth_plugin_sdk::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

/// The best score of a node.
pub const HIGHEST: i64 = 100;

/// What a profile may configure.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// How nodes are scored.
    pub scoring_strategy: ScoringStrategy,
    /// Above 0: what pods reserve is taken off all NUMA nodes until the node's data account for it.
    #[schemars(range(min = 0))]
    pub cache_resync_period_seconds: i64,
    /// A node is left out between a reservation on it and the binding. It wins over cacheResyncPeriodSeconds.
    pub discard_reserved_nodes: bool,
    /// How reservations are accounted for.
    pub cache: Cache,
    /// Whether NUMA nodes are looked at as evictions would leave them; only Disabled is served.
    pub preemption_mode: PreemptionMode,
}

/// How nodes are scored.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScoringStrategy {
    /// What makes a node better.
    #[serde(rename = "type")]
    pub strategy: Strategy,
    /// Weights of resources; those that are not named weigh 1.
    pub resources: Vec<ResourceWeight>,
}

impl Default for ScoringStrategy {
    fn default() -> Self {
        let resources = ["cpu", "memory"].map(|name| ResourceWeight { name: name.into(), weight: 1 });
        ScoringStrategy { strategy: Strategy::LeastAllocated, resources: resources.into() }
    }
}

impl ScoringStrategy {
    /// A resource's weight, at least 1.
    pub fn weight(&self, resource: &str) -> i64 {
        let named = self.resources.iter().find(|each| each.name == resource);
        named.map_or(1, |each| each.weight.max(1))
    }
}

/// What makes a node better.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub enum Strategy {
    LeastAllocated,
    MostAllocated,
    BalancedAllocation,
    LeastNUMANodes,
}

/// A resource's weight.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct ResourceWeight {
    /// Such as cpu.
    pub name: String,
    /// 0 counts as 1.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub weight: i64,
}

/// How reservations are accounted for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cache {
    /// Which pods of other schedulers make a node's data doubtful.
    pub foreign_pods_detect: ForeignPods,
    /// Which pods a node's fingerprint is compared with.
    pub resync_method: ResyncMethod,
    /// Whether a changed policy or scope counts at once.
    pub resync_scope: ResyncScope,
    /// Without effect: the scheduler brings the pods.
    pub informer_mode: InformerMode,
}

/// Which pods of other schedulers make a node's data doubtful.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub enum ForeignPods {
    None,
    #[default]
    All,
    OnlyExclusiveResources,
}

/// Which pods a node's fingerprint is compared with.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub enum ResyncMethod {
    #[default]
    Autodetect,
    All,
    OnlyExclusiveResources,
}

/// Which changes of a node's data count without a fingerprint.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub enum ResyncScope {
    #[default]
    All,
    OnlyResources,
}

/// Where pods come from, in scheduler-plugins.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub enum InformerMode {
    Shared,
    #[default]
    Dedicated,
}

/// Whether evictions are simulated.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub enum PreemptionMode {
    #[default]
    Disabled,
}
