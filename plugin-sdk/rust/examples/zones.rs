//! The plugin with which the conformance kit asks about the queue's order and about
//! pod groups: a group goes to one zone, best to small nodes, and pods of higher
//! priority come first.

use std::collections::BTreeMap;
use std::process::ExitCode;

use berth_plugin_sdk::{
    Clock, Code, GroupPreemption, Nodes, Normalization, Placement, PlacementProgress, Plugin, Pod, PodGroup,
    ProposedPlacement, Status, allocatable, labels,
};

const ZONE: &str = "topology.kubernetes.io/zone";

fn sort_key(pod: &Pod) -> [i64; 1] {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority);
    [-i64::from(priority.unwrap_or_default())]
}

fn generate_placements(nodes: &Nodes<'_>) -> Result<Vec<Placement>, Status> {
    let mut zones: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for (index, node) in nodes.asked() {
        if let Some(zone) = labels(node).get(ZONE) {
            zones.entry(zone).or_insert_with(|| vec![false; nodes.len()])[index] = true;
        }
    }
    if zones.is_empty() {
        return Err(Status::unschedulable("no node has a zone"));
    }
    Ok(zones.into_iter().map(|(zone, nodes)| Placement { name: zone.into(), nodes }).collect())
}

fn score_placements(nodes: &Nodes<'_>, proposed: &[ProposedPlacement<'_>]) -> Vec<i64> {
    let size = |each: &ProposedPlacement<'_>| {
        each.assignments.iter().map(|(_, index)| allocatable(nodes.at(*index), "cpu")).sum()
    };
    proposed.iter().map(size).collect()
}

fn placement_feasible(group: &PodGroup, progress: PlacementProgress) -> Result<(), Status> {
    let needed = group.pods.len();
    if progress.scheduled >= needed {
        return Ok(());
    }
    let code = if progress.scheduled + progress.remaining < needed { Code::Unschedulable } else { Code::Wait };
    Err(Status::new(code, "all pods of the group are needed"))
}

fn pod_group_post_filter(nodes: &Nodes<'_>) -> Vec<GroupPreemption> {
    let on = |name: &str| nodes.pods_on(name).map(|placed| placed.uid.clone()).collect();
    let victims = nodes.asked().map(|(_, node)| on(node.metadata.name.as_deref().unwrap_or_default()));
    victims.filter(|victims: &Vec<String>| !victims.is_empty()).map(|victims| GroupPreemption { victims }).collect()
}

fn main() -> ExitCode {
    let plugin = Plugin::new("zones", ())
        .clock(&Clock::new())
        .sort_key(|(), pod| sort_key(pod))
        .generate_placements(|(), _, _, nodes| generate_placements(nodes))
        .score_placements(|(), _, _, nodes, proposed| score_placements(nodes, proposed))
        .placement_feasible(|(), group, _, progress| placement_feasible(group, progress))
        .pod_group_post_filter(|(), _, _, nodes, _| Ok(pod_group_post_filter(nodes)))
        .wants_pods()
        .normalization(Normalization::MaxReverse);
    berth_plugin_sdk::main(plugin)
}
