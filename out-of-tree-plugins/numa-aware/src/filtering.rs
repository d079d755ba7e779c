//! Whether a node's topology manager would admit a pod.
// Source: pkg/noderesourcetopology/filter.go, numaresources.go (scheduler-plugins, v0.35).

use std::borrow::Cow;

use berth_plugin_sdk::Reason;

use crate::requests::{Amounts, Qos, Requests, is_host_level, is_numa_affine};
use crate::topology::{Policy, Scope, Topology, Zone};

pub const STALE: Reason = Reason::new("invalid node topology data");
const INIT: Reason = Reason::new("cannot align init container");
const SIDECAR: Reason = Reason::new("cannot align sidecar container");
const CONTAINER: Reason = Reason::new("cannot align container");
const POD: Reason = Reason::new("cannot align pod");

/// Whether a NUMA node has room for each container, or for the pod; `on_node` says
/// which resources the node as a whole has.
pub fn admits(topology: &Topology, requests: &Requests, on_node: impl Fn(&str) -> bool) -> Result<(), Reason> {
    if topology.manager.policy != Policy::SingleNumaNode {
        return Ok(());
    }
    if topology.manager.scope == Scope::Pod {
        return match zone_for(&topology.zones, &requests.pod, requests.qos, &on_node) {
            Some(_) => Ok(()),
            None => Err(POD),
        };
    }
    // Init containers run one after the other, before the others: none takes anything from the next.
    for container in &requests.init {
        if zone_for(&topology.zones, &container.requests, requests.qos, &on_node).is_none() {
            return Err(if container.is_sidecar { SIDECAR } else { INIT });
        }
    }
    let mut zones = Cow::Borrowed(topology.zones.as_slice());
    for (index, container) in requests.containers.iter().enumerate() {
        let zone = zone_for(&zones, container, requests.qos, &on_node).ok_or(CONTAINER)?;
        if index + 1 < requests.containers.len() {
            take(zones.to_mut(), zone, container, requests.qos);
        }
    }
    Ok(())
}

/// The NUMA node that the kubelet would choose: the lowest that has all resources.
fn zone_for(zones: &[Zone], request: &Amounts, qos: Qos, on_node: impl Fn(&str) -> bool) -> Option<u32> {
    let mut fitting = u64::MAX;
    for (resource, amount) in request.iter().filter(|(_, amount)| **amount != 0) {
        // Every resource is reported by the node as a whole, also one without NUMA affinity.
        if !on_node(resource) {
            return None;
        }
        let having: Vec<_> =
            zones.iter().filter_map(|zone| Some((zone.id, *zone.available.get(resource)?))).collect();
        if having.is_empty() && is_host_level(resource) {
            continue;
        }
        let enough = having.iter().filter(|(_, available)| suffices(qos, resource, *amount, *available));
        fitting &= enough.fold(0, |bits, (id, _)| bits | 1 << id);
    }
    (fitting != 0).then(|| fitting.trailing_zeros())
}

/// Whether a NUMA node has enough: CPUs and memory of pods that share them are not counted there.
pub fn suffices(qos: Qos, resource: &str, amount: i64, available: i64) -> bool {
    (qos != Qos::Guaranteed && is_numa_affine(resource)) || available >= amount
}

/// Takes a container's exclusive share off a NUMA node.
fn take(zones: &mut [Zone], id: u32, request: &Amounts, qos: Qos) {
    for zone in zones.iter_mut().filter(|zone| zone.id == id) {
        for (resource, amount) in request {
            if qos != Qos::Guaranteed && is_numa_affine(resource) {
                continue;
            }
            if let Some(available) = zone.available.get_mut(resource) {
                *available -= amount;
            }
        }
    }
}
