//! How good a node's NUMA nodes are for a pod, 0 to 100.
// Source: pkg/noderesourcetopology/score.go, least_allocated.go, max_allocated.go, balanced_allocation.go
// (scheduler-plugins, v0.35).

use crate::least_numa;
use crate::requests::{Amounts, Qos, Requests};
use crate::settings::{HIGHEST, ScoringStrategy, Strategy};
use crate::topology::{Policy, Scope, Topology, Zone};

/// A node's score. Pods that share CPUs find every node equally good.
pub fn score(topology: Option<&Topology>, requests: &Requests, strategy: &ScoringStrategy) -> i64 {
    if requests.qos != Qos::Guaranteed {
        return HIGHEST;
    }
    let Some(topology) = topology else { return 0 };
    let manager = topology.manager;
    if strategy.strategy == Strategy::LeastNUMANodes {
        return least_numa::score(topology, requests);
    }
    match (manager.policy, manager.scope) {
        (Policy::SingleNumaNode, Scope::Pod) => lowest(&topology.zones, &requests.pod, strategy),
        (Policy::SingleNumaNode, Scope::Container) => {
            let init = requests.init.iter().map(|container| &container.requests);
            let scores: Vec<i64> =
                init.chain(&requests.containers).map(|request| lowest(&topology.zones, request, strategy)).collect();
            let count = i64::try_from(scores.len()).unwrap_or(i64::MAX).max(1);
            scores.iter().sum::<i64>() / count
        }
        _ => 0,
    }
}

/// The lowest score of the NUMA nodes that the request fits on: the kubelet chooses.
fn lowest(zones: &[Zone], request: &Amounts, strategy: &ScoringStrategy) -> i64 {
    let mut lowest = 0;
    for zone in zones {
        let score = zone_score(zone, request, strategy);
        if lowest == 0 || (score != 0 && score < lowest) {
            lowest = score;
        }
    }
    lowest
}

fn zone_score(zone: &Zone, request: &Amounts, strategy: &ScoringStrategy) -> i64 {
    let available = |resource: &String| zone.available.get(resource).copied().unwrap_or(0);
    match strategy.strategy {
        Strategy::LeastAllocated => weighted(request, strategy, |resource, wanted| {
            share(resource, wanted, available(resource), |wanted, available| available - wanted)
        }),
        Strategy::MostAllocated => weighted(request, strategy, |resource, wanted| {
            share(resource, wanted, available(resource), |wanted, _| wanted)
        }),
        Strategy::BalancedAllocation => {
            balance(request.iter().map(|(resource, wanted)| fraction(resource, *wanted, available(resource))))
        }
        Strategy::LeastNUMANodes => 0,
    }
}

fn weighted(request: &Amounts, strategy: &ScoringStrategy, score: impl Fn(&String, i64) -> i64) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for (resource, wanted) in request {
        let weight = strategy.weight(resource);
        sum += score(resource, *wanted) * weight;
        weights += weight;
    }
    if weights == 0 { 0 } else { sum / weights }
}

/// What is left, or taken, of what is available, in percent; 0 where it is not enough.
fn share(resource: &str, wanted: i64, available: i64, part: impl Fn(i64, i64) -> i64) -> i64 {
    if available == 0 || wanted > available {
        return 0;
    }
    let (wanted, available) = (units(resource, wanted), units(resource, available));
    // In 128 bits: a hundred times the bytes of a NUMA node may pass 64.
    let percent = i128::from(part(wanted, available)) * i128::from(HIGHEST) / i128::from(available);
    i64::try_from(percent).unwrap_or(HIGHEST)
}

fn fraction(resource: &str, wanted: i64, available: i64) -> f64 {
    if available == 0 {
        return 1.0;
    }
    float(units(resource, wanted)) / float(units(resource, available))
}

/// 100 where all resources are taken to the same share, less by their variance; 0 where one is not enough.
fn balance(fractions: impl Iterator<Item = f64>) -> i64 {
    let fractions: Vec<f64> = fractions.collect();
    if fractions.iter().any(|fraction| *fraction > 1.0) {
        return 0;
    }
    let count = float(i64::try_from(fractions.len()).unwrap_or(i64::MAX));
    if fractions.len() < 2 {
        return HIGHEST; // one share is as balanced as can be
    }
    let mean = fractions.iter().sum::<f64>() / count;
    let variance = fractions.iter().map(|fraction| (fraction - mean).powi(2)).sum::<f64>() / (count - 1.0);
    #[allow(clippy::cast_possible_truncation)] // between 0 and 100
    let score = ((1.0 - variance) * float(HIGHEST)) as i64;
    score
}

/// Whole units, as `Quantity.Value` has them: CPUs are rounded up.
fn units(resource: &str, amount: i64) -> i64 {
    if resource == "cpu" { (amount + 999).div_euclid(1000) } else { amount }
}

#[allow(clippy::cast_precision_loss)] // as scheduler-plugins has it
fn float(amount: i64) -> f64 {
    amount as f64
}
