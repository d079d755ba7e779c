//! How few NUMA nodes a pod needs, and how close they are.
// Source: pkg/noderesourcetopology/least_numa.go (scheduler-plugins, v0.35).

use crate::filtering::suffices;
use crate::requests::{Amounts, Qos, Requests};
use crate::settings::HIGHEST;
use crate::topology::{Scope, Topology, Zone};

/// The distance where none is known, as ACPI has it.
const FARTHEST: i64 = 255;

/// NUMA nodes by their index, and whether none of that number are closer to each other.
struct Chosen {
    zones: Vec<usize>,
    closest: bool,
}

/// The fewer NUMA nodes the better, and among equals the closest.
pub fn score(topology: &Topology, requests: &Requests) -> i64 {
    match topology.manager.scope {
        Scope::Pod => pod_score(topology, requests),
        Scope::Container => container_score(topology, requests),
    }
}

fn pod_score(topology: &Topology, requests: &Requests) -> i64 {
    if !needs_zones(&topology.zones, &requests.pod) {
        return HIGHEST;
    }
    match fewest(&topology.zones, &requests.pod, requests.qos) {
        Some(chosen) => normalized(chosen.zones.len(), chosen.closest, topology.manager.max_numa_nodes),
        None => 0,
    }
}

fn container_score(topology: &Topology, requests: &Requests) -> i64 {
    let mut zones = topology.zones.clone();
    let (mut most, mut all_closest) = (0, true);
    let init = requests.init.iter().map(|container| &container.requests);
    for request in init.chain(&requests.containers) {
        if !needs_zones(&zones, request) {
            continue;
        }
        let Some(chosen) = fewest(&zones, request, requests.qos) else { return 0 };
        all_closest &= chosen.closest;
        most = most.max(chosen.zones.len());
        take(&mut zones, &chosen.zones, request);
    }
    if most == 0 { HIGHEST } else { normalized(most, all_closest, topology.manager.max_numa_nodes) }
}

fn normalized(count: usize, closest: bool, max_numa_nodes: i64) -> i64 {
    let step = HIGHEST / max_numa_nodes;
    let score = HIGHEST - i64::try_from(count).unwrap_or(i64::MAX) * step;
    if closest { score + step / 2 } else { score }
}

fn needs_zones(zones: &[Zone], request: &Amounts) -> bool {
    request.keys().any(|resource| zones.iter().any(|zone| zone.available.contains_key(resource)))
}

/// As few NUMA nodes as hold the request together.
fn fewest(zones: &[Zone], request: &Amounts, qos: Qos) -> Option<Chosen> {
    (1..=zones.len()).find_map(|count| among(zones, &combinations(zones.len(), count), request, qos))
}

/// Of these combinations, all of one size, the one that holds the request and whose NUMA nodes are closest.
fn among(zones: &[Zone], combinations: &[Vec<usize>], request: &Amounts, qos: Qos) -> Option<Chosen> {
    let closest = combinations.iter().map(|combination| distance(zones, combination)).min()?;
    let holding = combinations.iter().filter(|combination| holds(zones, combination, request, qos));
    // The first of those that are equally close: combinations begin with the lowest NUMA nodes.
    let chosen = holding.min_by_key(|combination| distance(zones, combination))?;
    Some(Chosen { zones: chosen.clone(), closest: distance(zones, chosen) == closest })
}

/// The sum of all distances; of combinations of one size it orders as their mean does.
fn distance(zones: &[Zone], combination: &[usize]) -> i64 {
    let cost = |from: usize, to: usize| zones[from].costs.get(&zones[to].id).copied().unwrap_or(FARTHEST);
    combination.iter().flat_map(|from| combination.iter().map(move |to| cost(*from, *to))).sum()
}

fn holds(zones: &[Zone], combination: &[usize], request: &Amounts, qos: Qos) -> bool {
    request.iter().all(|(resource, amount)| {
        let available: Option<Vec<i64>> =
            combination.iter().map(|index| zones[*index].available.get(resource).copied()).collect();
        let Some(available) = available else { return false };
        *amount == 0 || suffices(qos, resource, *amount, available.iter().sum())
    })
}

/// Takes a request off the chosen NUMA nodes, one after the other.
fn take(zones: &mut [Zone], chosen: &[usize], request: &Amounts) {
    for (resource, amount) in request {
        let mut left = *amount;
        for index in chosen {
            if let Some(available) = zones[*index].available.get_mut(resource) {
                let taken = left.min(*available);
                *available -= taken;
                left -= taken;
            }
        }
    }
}

/// All ways to choose `count` of the first `total` numbers, the lowest first.
fn combinations(total: usize, count: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut current: Vec<usize> = (0..count).collect();
    loop {
        found.push(current.clone());
        let Some(at) = (0..count).rev().find(|at| current[*at] < total - count + at) else { return found };
        current[at] += 1;
        for later in at + 1..count {
            current[later] = current[later - 1] + 1;
        }
    }
}
