//! The host's side of the state.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Serialize;

use crate::objects::ObjectKey;
use crate::outcomes::PodStage;
use crate::pb::{self, change, sync_request::Body};

const CHUNK: usize = 256;

/// Nodes by index, pods by UID, other objects by key, and what changed since the last generation.
#[derive(Default)]
pub struct Cluster {
    pub(crate) generation: i64,
    pub(crate) names: Vec<String>,
    nodes: BTreeMap<String, Vec<u8>>,
    pods: BTreeMap<String, pb::PodUpsert>,
    objects: BTreeMap<ObjectKey, Vec<u8>>,
    pub(crate) pending: Vec<pb::Change>,
}

impl Cluster {
    /// Adds or changes a node.
    pub fn put_node(&mut self, node: impl Into<Node>) {
        let node = node.into();
        let name = node.metadata.name.clone().unwrap_or_default();
        if self.nodes.insert(name.clone(), encoded(&node)).is_none() {
            self.names.push(name.clone());
        }
        let upsert = self.node_upsert(self.index(&name));
        self.change(change::Change::NodeUpsert(upsert));
    }

    /// Takes a node away; the last one moves to its index.
    ///
    /// # Panics
    /// There is no such node.
    pub fn remove_node(&mut self, name: &str) {
        let index = self.index(name);
        self.names.swap_remove(index);
        self.nodes.remove(name);
        self.change(change::Change::NodeRemove(pb::NodeRemove { index: number(index), name: name.into() }));
    }

    /// Counts a pod on a node. The attempt is that of an assumed pod, else 0.
    pub fn put_pod(&mut self, pod: impl Into<Pod>, node_name: &str, stage: PodStage, attempt: u32) {
        let pod = pod.into();
        let upsert = pb::PodUpsert {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            node_name: node_name.into(),
            stage: stage as i32,
            object: encoded(&pod).into(),
            attempt,
        };
        self.pods.insert(upsert.uid.clone(), upsert.clone());
        self.change(change::Change::PodUpsert(upsert));
    }

    /// Counts a pod no longer.
    pub fn remove_pod(&mut self, pod: impl Into<Pod>) {
        let uid = pod.into().metadata.uid.unwrap_or_default();
        self.pods.remove(&uid);
        self.change(change::Change::PodRemove(pb::PodRemove { uid }));
    }

    /// Brings an object of a watched kind; anything that encodes to its JSON.
    pub fn put_object(&mut self, key: &ObjectKey, object: &impl Serialize) {
        self.objects.insert(key.clone(), encoded(object));
        self.change(change::Change::ObjectUpsert(self.object_upsert(key)));
    }

    /// Takes one away.
    pub fn remove_object(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
        self.change(change::Change::ObjectRemove(pb::ObjectRemove { key: Some(key.message()) }));
    }

    fn change(&mut self, change: change::Change) {
        self.pending.push(pb::Change { change: Some(change) });
    }

    /// Everything since the last step, as a delta to a new generation.
    pub(crate) fn step(&mut self) -> pb::Delta {
        self.generation += 1;
        pb::Delta {
            base_generation: self.generation - 1,
            generation: self.generation,
            changes: std::mem::take(&mut self.pending),
            node_count: number(self.names.len()),
        }
    }

    /// The full state.
    pub(crate) fn transfer(&mut self, epoch: &str) -> Vec<pb::SyncRequest> {
        self.pending.clear();
        self.generation = self.generation.max(1);
        let nodes = (0..self.names.len()).map(|index| change::Change::NodeUpsert(self.node_upsert(index)));
        let pods = self.pods.values().cloned().map(change::Change::PodUpsert);
        let objects = self.objects.keys().map(|key| change::Change::ObjectUpsert(self.object_upsert(key)));
        let all = nodes.chain(pods).chain(objects);
        let changes: Vec<_> = all.map(|change| pb::Change { change: Some(change) }).collect();
        let begin = pb::Begin { epoch: epoch.into(), resume_generation: None };
        let commit = pb::Commit { generation: self.generation, node_count: number(self.names.len()) };
        let chunks = changes.chunks(CHUNK).map(|part| Body::Chunk(pb::Chunk { changes: part.to_vec() }));
        let bodies = std::iter::once(Body::Begin(begin)).chain(chunks).chain([Body::Commit(commit)]);
        bodies.map(|body| pb::SyncRequest { body: Some(body) }).collect()
    }

    pub(crate) fn index(&self, name: &str) -> usize {
        self.names.iter().position(|each| each == name).expect("a node of the cluster")
    }

    fn node_upsert(&self, index: usize) -> pb::NodeUpsert {
        let name = self.names[index].clone();
        pb::NodeUpsert { index: number(index), object: self.nodes[&name].clone().into(), name }
    }

    fn object_upsert(&self, key: &ObjectKey) -> pb::ObjectUpsert {
        pb::ObjectUpsert { key: Some(key.message()), object: self.objects[key].clone().into() }
    }
}

impl ObjectKey {
    fn message(&self) -> pb::ObjectKey {
        pb::ObjectKey {
            group: self.group.clone(),
            version: self.version.clone(),
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// An object's JSON; what a test makes has one.
pub(crate) fn encoded(object: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(object).expect("an object that encodes to JSON")
}

/// A count as it is sent.
pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a small cluster")
}
