//! The plugin: data of nodes come in, pods are filtered, scored and reserved by them.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use berth_plugin_sdk::serde_json::{self, json};
use berth_plugin_sdk::{
    Action, Arguments, Call, Event, EventInterest, MetadataPatch, Metric, MetricKind, Node, Nodes, ObjectKey,
    PlacedPod, Plugin, Pod, PodStage, Reason, Requeue, Status, Verdicts,
};

use crate::filtering::{STALE, admits};
use crate::node_record::{NodeRecord, PodOnNode, Reservation};
use crate::requests::{Qos, Requests};
use crate::scoring::score;
use crate::settings::{ResyncMethod, ResyncScope, Settings};
use crate::topology::{KIND, Topology, node_of, watched};

type Profiles = Arc<Mutex<BTreeSet<String>>>;

/// What the plugin holds.
pub struct NumaAware {
    arguments: Arguments<Settings>,
    /// The profiles that use the plugin: pods of others are placed without it.
    profiles: Profiles,
    requeue: Requeue,
    nodes: HashMap<String, NodeRecord>,
    /// Nodes whose data can't be read.
    unreadable: BTreeSet<String>,
}

/// The plugin numa-aware.
pub fn plugin() -> Plugin<NumaAware> {
    let (profiles, requeue) = (Profiles::default(), Requeue::new());
    let known = profiles.clone();
    let arguments = Arguments::checked(move |profile, _: &Settings| {
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(profile.name.clone());
        Vec::new()
    });
    let state = NumaAware {
        arguments: arguments.clone(),
        profiles,
        requeue: requeue.clone(),
        nodes: HashMap::new(),
        unreadable: BTreeSet::new(),
    };
    Plugin::new("numa-aware", state)
        .version(env!("CARGO_PKG_VERSION"))
        .arguments(&arguments)
        .profile_removed(NumaAware::profile_removed)
        .filter_nodes(NumaAware::filter)
        .score_nodes(NumaAware::score)
        .reserve(NumaAware::reserve, NumaAware::unreserve)
        .post_bind(NumaAware::post_bind)
        .queueing_hint(NumaAware::hint)
        .events(events())
        .requeue(&requeue)
        .wants_pods()
        .pods_without_status()
        .without_overlays()
        .resource(watched())
        .state_reset(NumaAware::state_reset)
        .pod_upserted(NumaAware::pod_upserted)
        .pod_removed(NumaAware::pod_removed)
        .object_upserted(NumaAware::object_upserted)
        .object_removed(NumaAware::object_removed)
        .metrics(NumaAware::metrics)
        .state(NumaAware::state)
        .pod_fields([
            "/spec/containers/*/resources",
            "/spec/initContainers/*/resources",
            "/spec/initContainers/*/restartPolicy",
            "/spec/overhead",
            "/spec/schedulerName",
        ])
}

fn events() -> [EventInterest; 3] {
    let no_hint = |resource: &str, actions: Vec<Action>| EventInterest {
        no_hint: true,
        ..EventInterest::new(resource, actions)
    };
    [
        EventInterest::new(KIND, [Action::Add, Action::Update]),
        no_hint("Node", vec![Action::Add, Action::UpdateNodeAllocatable]),
        no_hint("Pod", vec![Action::Delete]),
    ]
}

impl NumaAware {
    fn profile_removed(&mut self, profile: &str) {
        self.profiles.lock().unwrap_or_else(PoisonError::into_inner).remove(profile);
    }

    /// Turns down nodes none of whose NUMA nodes has room.
    fn filter(&self, pod: &Pod, nodes: &Nodes<'_>) -> Verdicts {
        let requests = Requests::of(pod);
        let settings = self.arguments.of(pod);
        let best_effort = requests.qos == Qos::BestEffort && !requests.include_devices();
        nodes.verdicts(|_, node| if best_effort { Ok(()) } else { self.admitted(node, &requests, &settings) })
    }

    fn admitted(&self, node: &Node, requests: &Requests, settings: &Settings) -> Result<(), Reason> {
        let record = node.metadata.name.as_ref().and_then(|name| self.nodes.get(name));
        match record.map(|record| record.topology(settings)) {
            Some(Err(())) => Err(STALE),
            Some(Ok(Some(topology))) => admits(topology, requests, |resource| has(node, resource)),
            _ => Ok(()),
        }
    }

    fn score(&self, pod: &Pod, nodes: &Nodes<'_>) -> Vec<i64> {
        let (requests, settings) = (Requests::of(pod), self.arguments.of(pod));
        nodes.scores(|_, node| {
            let record = node.metadata.name.as_ref().and_then(|name| self.nodes.get(name));
            let topology = record.and_then(|record| record.topology(&settings).ok().flatten());
            score(topology, &requests, &settings.scoring_strategy)
        })
    }

    /// Takes the pod off the node's NUMA nodes, until its data account for it.
    #[allow(clippy::unnecessary_wraps)] // the form is the SDK's
    fn reserve(&mut self, call: &Call, pod: &Pod, node: &Node) -> Result<Option<MetadataPatch>, Status> {
        let Some(node_name) = &node.metadata.name else { return Ok(None) };
        let requests = Requests::of(pod);
        let record = self.record(node_name);
        let pod = PodOnNode {
            namespace: call.key.namespace.clone(),
            name: call.key.name.clone(),
            exclusive: requests.are_exclusive(|resource| record.has_zones(resource)),
            foreign: false,
        };
        record.reserve(
            &call.key.uid,
            Reservation { attempt: call.key.attempt, pod, amounts: requests.pod, bound: false },
        );
        Ok(None)
    }

    fn unreserve(&mut self, call: &Call, node_name: &str) {
        if let Some(record) = self.nodes.get_mut(node_name) {
            record.unreserve(&call.key.uid, call.key.attempt);
        }
    }

    fn post_bind(&mut self, call: &Call, node_name: &str) {
        if let Some(record) = self.nodes.get_mut(node_name) {
            record.bound(&call.key.uid);
        }
    }

    /// Tries a pod again where a node's new data have room for it.
    #[allow(clippy::unused_self)] // the form is the SDK's
    fn hint(&self, pod: &Pod, event: &Event) -> bool {
        let Some(topology) = event.new.as_deref().and_then(|object| Topology::read(object).ok()) else { return true };
        // Which resources the node has as a whole is asked at the attempt.
        admits(&topology, &Requests::of(pod), |_| true).is_ok()
    }

    fn state_reset(&mut self, epoch_changed: bool) {
        self.unreadable.clear();
        if epoch_changed {
            self.nodes.clear();
        } else {
            self.nodes.values_mut().for_each(NodeRecord::keep_reservations);
        }
    }

    fn pod_upserted(&mut self, placed: &PlacedPod) {
        if placed.stage == PodStage::Nominated {
            return;
        }
        let scheduler = placed.pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        let foreign =
            !self.profiles.lock().unwrap_or_else(PoisonError::into_inner).contains(scheduler.unwrap_or_default());
        let method = self.resync().0;
        let record = self.record(&placed.node_name);
        let pod = PodOnNode {
            namespace: placed.pod.metadata.namespace.clone().unwrap_or_default(),
            name: placed.pod.metadata.name.clone().unwrap_or_default(),
            exclusive: Requests::of(&placed.pod).are_exclusive(|resource| record.has_zones(resource)),
            foreign: foreign && placed.stage == PodStage::Placed,
        };
        if record.put_pod(&placed.uid, pod, method) {
            self.proven(&placed.node_name);
        }
    }

    fn pod_removed(&mut self, placed: &PlacedPod) {
        let method = self.resync().0;
        if let Some(record) = self.nodes.get_mut(&placed.node_name)
            && record.remove_pod(&placed.uid, method)
        {
            self.proven(&placed.node_name);
        }
    }

    /// Takes a node's data. Data that can't be read are none: refused, they would hold
    /// up the state of all other nodes.
    #[allow(clippy::unnecessary_wraps)] // the form is the SDK's
    fn object_upserted(&mut self, key: &ObjectKey, object: &[u8]) -> Result<(), Infallible> {
        let Some(node_name) = node_of(key) else { return Ok(()) };
        let (method, scope) = self.resync();
        if let Ok(topology) = Topology::read(object) {
            self.unreadable.remove(node_name);
            self.record(node_name).put_topology(topology, method, scope);
        } else {
            self.unreadable.insert(node_name.to_string());
            self.record(node_name).remove_topology();
        }
        Ok(())
    }

    fn object_removed(&mut self, key: &ObjectKey) {
        if let Some(node_name) = node_of(key) {
            self.unreadable.remove(node_name);
            self.record(node_name).remove_topology();
        }
    }

    /// A node's data were proven by a pod that came or went: no event says so.
    fn proven(&self, node_name: &str) {
        self.requeue.all_rejected(&format!("topology data of node {node_name} account for its pods"));
    }

    /// How data are proven: as any profile says, for nodes are held once for all of them.
    fn resync(&self) -> (ResyncMethod, ResyncScope) {
        let profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        let caches: Vec<_> = profiles.iter().map(|name| self.arguments.of_profile(name).cache.clone()).collect();
        let method =
            caches.iter().map(|cache| cache.resync_method).find(|method| *method != ResyncMethod::Autodetect);
        let scope = caches.iter().map(|cache| cache.resync_scope).find(|scope| *scope != ResyncScope::All);
        (method.unwrap_or_default(), scope.unwrap_or_default())
    }

    fn record(&mut self, node_name: &str) -> &mut NodeRecord {
        if !self.nodes.contains_key(node_name) {
            self.nodes.insert(node_name.to_string(), NodeRecord::default());
        }
        self.nodes.get_mut(node_name).expect("a record that was just made")
    }

    fn metrics(&mut self) -> Vec<Metric> {
        let [with_data, doubtful, reserved] = self.counts();
        let unreadable = u32::try_from(self.unreadable.len()).unwrap_or(u32::MAX);
        let gauge = |name: &str, help: &str, value: u32| Metric::new(name, MetricKind::Gauge, help, f64::from(value));
        vec![
            gauge("numa_aware_nodes", "Nodes with topology data.", with_data),
            gauge("numa_aware_doubtful_nodes", "Nodes whose data do not account for all their pods.", doubtful),
            gauge("numa_aware_unreadable_nodes", "Nodes whose topology data can't be read.", unreadable),
            gauge("numa_aware_reservations", "Pods that nodes' data do not account for yet.", reserved),
        ]
    }

    fn state(&self) -> serde_json::Value {
        let [with_data, doubtful, reserved] = self.counts();
        json!({
            "nodes": with_data, "doubtfulNodes": doubtful, "unreadable": self.unreadable, "reservations": reserved,
        })
    }

    fn counts(&self) -> [u32; 3] {
        self.nodes.values().fold([0; 3], |[with_data, doubtful, reserved], record| {
            let (has_data, is_doubtful, reservations) = record.summary();
            [with_data + u32::from(has_data), doubtful + u32::from(is_doubtful), reserved + reservations]
        })
    }
}

/// Whether the node as a whole has a resource.
fn has(node: &Node, resource: &str) -> bool {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    allocatable.is_some_and(|allocatable| allocatable.contains_key(resource))
}
