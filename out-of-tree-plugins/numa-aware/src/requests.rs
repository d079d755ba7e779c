//! What a pod asks for, container by container.

use std::collections::BTreeMap;

use berth_plugin_sdk::k8s_openapi::api::core::v1::PodSpec;
use berth_plugin_sdk::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use berth_plugin_sdk::{Container, Pod, amount};

/// Resources by name: milli-cores of cpu, units of anything else.
pub type Amounts = BTreeMap<String, i64>;

/// How a kubelet treats a pod, by its requests and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qos {
    Guaranteed,
    Burstable,
    BestEffort,
}

/// A pod's containers, in the order in which the topology manager aligns them.
#[derive(Clone, Debug)]
pub struct Requests {
    pub qos: Qos,
    pub init: Vec<InitContainer>,
    pub containers: Vec<Amounts>,
    /// What the pod needs at its peak.
    pub pod: Amounts,
}

/// An init container.
#[derive(Clone, Debug)]
pub struct InitContainer {
    /// It runs as long as the pod does.
    pub is_sidecar: bool,
    pub requests: Amounts,
}

impl Requests {
    /// What a pod asks for.
    pub fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Requests { qos: Qos::BestEffort, init: Vec::new(), containers: Vec::new(), pod: Amounts::new() };
        };
        let init_container =
            |container| InitContainer { is_sidecar: is_sidecar(container), requests: requests(container) };
        let init: Vec<_> = spec.init_containers.iter().flatten().map(init_container).collect();
        let containers: Vec<_> = spec.containers.iter().map(requests).collect();
        let pod = at_peak(&init, &containers, &amounts(spec.overhead.as_ref()));
        Requests { qos: qos(spec), init, containers, pod }
    }

    /// Whether a container asks for a resource that is not Kubernetes' own.
    pub fn include_devices(&self) -> bool {
        let init = self.init.iter().map(|container| &container.requests);
        init.chain(&self.containers).flat_map(Amounts::keys).any(|resource| !is_native(resource))
    }

    /// Whether a container that stays has CPUs, memory or devices to itself.
    // Source: pkg/noderesourcetopology/resourcerequests/exclusive.go (scheduler-plugins, v0.35).
    pub fn are_exclusive(&self, has_zones: impl Fn(&str) -> bool) -> bool {
        let sidecars = self.init.iter().filter(|container| container.is_sidecar).map(|container| &container.requests);
        sidecars.chain(&self.containers).flatten().any(|(resource, amount)| {
            if !is_native(resource) {
                return has_zones(resource);
            }
            let whole = if resource == "cpu" { amount % 1000 == 0 } else { is_numa_affine(resource) };
            self.qos == Qos::Guaranteed && whole && *amount > 0
        })
    }
}

/// The larger of the largest init container and of all containers together, and the overhead.
// Source: pkg/util/resource.go GetPodEffectiveRequest (scheduler-plugins, v0.35).
fn at_peak(init: &[InitContainer], containers: &[Amounts], overhead: &Amounts) -> Amounts {
    let mut peak = Amounts::new();
    for (resource, amount) in containers.iter().flatten() {
        *peak.entry(resource.clone()).or_default() += amount;
    }
    for (resource, amount) in init.iter().flat_map(|container| &container.requests) {
        let entry = peak.entry(resource.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
    for (resource, amount) in overhead {
        *peak.entry(resource.clone()).or_default() += amount;
    }
    peak
}

// Source: pkg/apis/core/v1/helper/qos/qos.go (Kubernetes v1.36).
fn qos(spec: &PodSpec) -> Qos {
    let containers = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let compute = |amounts: Amounts| -> Amounts {
        amounts
            .into_iter()
            .filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && *amount > 0)
            .collect()
    };
    let (mut requested, mut limited) = (Amounts::new(), Amounts::new());
    let mut all_limited = true;
    for container in containers() {
        let limits = compute(limits(container));
        all_limited &= limits.len() == 2;
        for (sum, part) in [(&mut requested, compute(requests(container))), (&mut limited, limits)] {
            for (name, amount) in part {
                *sum.entry(name).or_default() += amount;
            }
        }
    }
    match (requested.is_empty() && limited.is_empty(), all_limited && requested == limited) {
        (true, _) => Qos::BestEffort,
        (false, true) => Qos::Guaranteed,
        (false, false) => Qos::Burstable,
    }
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn requests(container: &Container) -> Amounts {
    amounts(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

fn limits(container: &Container) -> Amounts {
    amounts(container.resources.as_ref().and_then(|resources| resources.limits.as_ref()))
}

fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let quantities = quantities.into_iter().flatten();
    quantities.map(|(name, quantity)| (name.clone(), amount(name, quantity))).collect()
}

/// Resources of Kubernetes itself: those without a prefix, or with one of its own.
pub fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Resources that may be bound to no NUMA node, though the node has them.
pub fn is_host_level(resource: &str) -> bool {
    matches!(resource, "ephemeral-storage" | "storage") || !is_native(resource)
}

/// Resources that only guaranteed pods have to themselves on a NUMA node.
pub fn is_numa_affine(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}
