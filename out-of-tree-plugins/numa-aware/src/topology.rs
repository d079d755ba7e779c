//! A node's NUMA nodes, as its `NodeResourceTopology` says.
// Source: pkg/noderesourcetopology/pluginhelpers.go, nodeconfig/topologymanager.go (scheduler-plugins, v0.35).

use std::collections::BTreeMap;

use berth_plugin_sdk::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use berth_plugin_sdk::serde_json::{self, Value};
use berth_plugin_sdk::{ObjectKey, WatchedResource, amount};
use serde::Deserialize;

const GROUP: &str = "topology.node.k8s.io";
const VERSION: &str = "v1alpha2";
const RESOURCE: &str = "noderesourcetopologies";
/// The kind as event interests name it.
pub const KIND: &str = "noderesourcetopologies.v1alpha2.topology.node.k8s.io";

/// NUMA nodes have a bit each.
const MAX_ZONES: u32 = 64;
/// The topology manager's own limit where none is given.
const DEFAULT_MAX_NUMA_NODES: i64 = 8;
const HIGHEST_MAX_NUMA_NODES: i64 = 1024;

const FINGERPRINT: &str = "nodeTopologyPodsFingerprint";
const FINGERPRINT_METHOD: &str = "nodeTopologyPodsFingerprintMethod";
const FINGERPRINT_ANNOTATION: &str = "topology.node.k8s.io/fingerprint";
const EXCLUSIVE_PODS: &str = "with-exclusive-resources";

/// The kind to watch.
pub fn watched() -> WatchedResource {
    WatchedResource::new(GROUP, VERSION, RESOURCE)
}

/// The name of the node that an object is about; none for other kinds.
pub fn node_of(key: &ObjectKey) -> Option<&str> {
    (key.group == GROUP && key.resource == RESOURCE).then_some(key.name.as_str())
}

/// What the topology manager of a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    pub policy: Policy,
    pub scope: Scope,
    pub max_numa_nodes: i64,
}

/// Which pods a node admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    None,
    BestEffort,
    Restricted,
    SingleNumaNode,
}

/// What is aligned as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Container,
    Pod,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    pub id: u32,
    /// What is available: milli-cores of cpu, units of anything else.
    pub available: BTreeMap<String, i64>,
    /// Distances to other NUMA nodes, by their id.
    pub costs: BTreeMap<u32, i64>,
}

/// A node's NUMA nodes, and what its kubelet does with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    pub manager: Manager,
    pub zones: Vec<Zone>,
    /// Of the pods that the data account for; empty where there is none.
    pub fingerprint: String,
    /// The fingerprint is of pods with exclusive resources alone.
    pub exclusive_pods_alone: bool,
}

impl Topology {
    /// Reads a `NodeResourceTopology`.
    pub fn read(object: &[u8]) -> Result<Self, serde_json::Error> {
        let object: NodeResourceTopology = serde_json::from_slice(object)?;
        let attribute =
            |name: &str| object.attributes.iter().find(|each| each.name == name).map(|each| each.value.as_str());
        let annotation = object.metadata.annotations.get(FINGERPRINT_ANNOTATION).map(String::as_str);
        Ok(Topology {
            manager: Manager::of(&object),
            zones: object.zones.iter().filter_map(Zone::of).collect(),
            fingerprint: attribute(FINGERPRINT).or(annotation).unwrap_or_default().to_string(),
            exclusive_pods_alone: attribute(FINGERPRINT).is_some()
                && attribute(FINGERPRINT_METHOD) == Some(EXCLUSIVE_PODS),
        })
    }

    /// Takes a request off every NUMA node: on which one the pod will be is the kubelet's choice.
    pub fn take_off_all(&mut self, request: &BTreeMap<String, i64>) {
        for zone in &mut self.zones {
            for (resource, amount) in request {
                if let Some(available) = zone.available.get_mut(resource) {
                    *available = (*available - amount).max(0);
                }
            }
        }
    }
}

impl Manager {
    /// The deprecated list of policies, then attributes, which win.
    fn of(object: &NodeResourceTopology) -> Self {
        let mut manager =
            Manager { policy: Policy::None, scope: Scope::Container, max_numa_nodes: DEFAULT_MAX_NUMA_NODES };
        if let Some((policy, scope)) = object.topology_policies.first().and_then(|name| by_level(name)) {
            (manager.policy, manager.scope) = (policy, scope);
        }
        for Attribute { name, value } in &object.attributes {
            match (name.as_str(), value.as_str()) {
                ("topologyManagerScope", "container") => manager.scope = Scope::Container,
                ("topologyManagerScope", "pod") => manager.scope = Scope::Pod,
                ("topologyManagerPolicy", "none") => manager.policy = Policy::None,
                ("topologyManagerPolicy", "best-effort") => manager.policy = Policy::BestEffort,
                ("topologyManagerPolicy", "restricted") => manager.policy = Policy::Restricted,
                ("topologyManagerPolicy", "single-numa-node") => manager.policy = Policy::SingleNumaNode,
                ("topologyManagerMaxNUMANodes", number) => match number.parse() {
                    Ok(number) if number > 1 => manager.max_numa_nodes = HIGHEST_MAX_NUMA_NODES.min(number),
                    _ => {}
                },
                _ => {}
            }
        }
        manager
    }
}

fn by_level(name: &str) -> Option<(Policy, Scope)> {
    let (policy, scope) = match name.strip_suffix("PodLevel") {
        Some(policy) => (policy, Scope::Pod),
        None => (name.strip_suffix("ContainerLevel")?, Scope::Container),
    };
    match policy {
        "SingleNUMANode" => Some((Policy::SingleNumaNode, scope)),
        "BestEffort" => Some((Policy::BestEffort, scope)),
        "Restricted" => Some((Policy::Restricted, scope)),
        _ => None,
    }
}

impl Zone {
    /// A zone that is a NUMA node; others, such as sockets, are left out.
    fn of(zone: &ZoneObject) -> Option<Self> {
        if zone.kind != "Node" {
            return None;
        }
        let resources = zone.resources.iter();
        let costs = zone.costs.iter();
        Some(Zone {
            id: zone_id(&zone.name)?,
            available: resources.map(|each| (each.name.clone(), quantity(&each.name, &each.available))).collect(),
            costs: costs.filter_map(|each| Some((zone_id(&each.name)?, each.value))).collect(),
        })
    }
}

fn zone_id(name: &str) -> Option<u32> {
    name.strip_prefix("node-")?.parse().ok().filter(|id| *id < MAX_ZONES)
}

/// A quantity, which the API server takes as a text or a number.
fn quantity(resource: &str, value: &Value) -> i64 {
    match value {
        Value::String(text) => amount(resource, &Quantity(text.clone())),
        other => amount(resource, &Quantity(other.to_string())),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeResourceTopology {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    topology_policies: Vec<String>,
    #[serde(default)]
    attributes: Vec<Attribute>,
    #[serde(default)]
    zones: Vec<ZoneObject>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Attribute {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct ZoneObject {
    name: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    resources: Vec<ResourceInfo>,
    #[serde(default)]
    costs: Vec<Cost>,
}

#[derive(Deserialize)]
struct ResourceInfo {
    name: String,
    #[serde(default)]
    available: Value,
}

#[derive(Deserialize)]
struct Cost {
    name: String,
    value: i64,
}
