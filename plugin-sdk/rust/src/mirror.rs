//! What the state stream said, up to one generation.
//!
//! ```text
//! (nothing) --commit--> (epoch, generation) --delta--> (epoch, later generation)
//!     ^                        |
//!     +------ SyncError -------+    a mirror that can't follow holds nothing, never something wrong
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use prost::bytes::Bytes;

use crate::objects::{ObjectKey, PlacedPod, SyncError};
use crate::pb::{self, NackReason};
use crate::steps::Step;

/// Decodes a step's changes.
pub(crate) type StepDecoder<'a> = &'a dyn Fn(Vec<pb::Change>) -> Result<Vec<Step>, SyncError>;

/// Follows what a mirror holds, change by change. After an error nothing is held
/// any more, and everything is asked for anew.
pub(crate) trait Follower: Send + Sync {
    fn state_reset(&self, changed: bool) -> Result<(), SyncError>;
    fn state_settled(&self) -> Result<(), SyncError>;
    fn node_upserted(&self, index: usize, node: &Node) -> Result<(), SyncError>;
    fn node_removed(&self, index: usize, last: usize) -> Result<(), SyncError>;
    fn pod_upserted(&self, placed: &PlacedPod) -> Result<(), SyncError>;
    fn pod_removed(&self, placed: &PlacedPod) -> Result<(), SyncError>;
    fn object_upserted(&self, key: &ObjectKey, object: &[u8]) -> Result<(), SyncError>;
    fn object_removed(&self, key: &ObjectKey) -> Result<(), SyncError>;
}

/// Nodes by dense index, pods by UID, other objects by key.
pub(crate) struct Mirror {
    follower: Arc<dyn Follower>,
    pub epoch: String,
    pub generation: i64,
    /// The epoch last held, which a mirror that lost its way remembers.
    last_epoch: String,
    /// The first generation from which on every node has kept its index.
    pub layout_since: i64,
    nodes: Vec<Node>,
    names: Vec<String>,
    index: HashMap<String, usize>,
    pods: HashMap<String, Arc<PlacedPod>>,
    on_node: HashMap<String, BTreeMap<String, Arc<PlacedPod>>>,
    objects: BTreeMap<ObjectKey, Bytes>,
}

impl Mirror {
    pub fn new(follower: Arc<dyn Follower>) -> Self {
        Mirror {
            follower,
            epoch: String::new(),
            generation: 0,
            last_epoch: String::new(),
            layout_since: 0,
            nodes: Vec::new(),
            names: Vec::new(),
            index: HashMap::new(),
            pods: HashMap::new(),
            on_node: HashMap::new(),
            objects: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes, pods and other objects are held.
    pub fn counts(&self) -> [usize; 3] {
        [self.nodes.len(), self.pods.len(), self.objects.len()]
    }

    pub fn node_at(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    pub fn name_at(&self, index: usize) -> &str {
        &self.names[index]
    }

    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// A node by name, if it is there.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.index_of(name).map(|index| self.node_at(index))
    }

    pub fn pods_on(&self, node_name: &str) -> impl Iterator<Item = &PlacedPod> + use<'_> {
        self.on_node.get(node_name).into_iter().flat_map(|pods| pods.values().map(AsRef::as_ref))
    }

    pub fn object(&self, key: &ObjectKey) -> Option<&[u8]> {
        self.objects.get(key).map(AsRef::as_ref)
    }

    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &[u8])> + use<'_> {
        self.objects.iter().map(|(key, object)| (key, object.as_ref()))
    }

    /// Holds what a full transfer brought, and nothing else.
    pub fn replace(&mut self, epoch: &str, commit: pb::Commit, steps: Vec<Step>) -> Result<(), SyncError> {
        let changed = epoch != self.last_epoch;
        epoch.clone_into(&mut self.last_epoch);
        self.drop_all();
        self.follower.state_reset(changed)?;
        self.apply(steps, commit.node_count)?;
        epoch.clone_into(&mut self.epoch);
        self.generation = commit.generation;
        self.layout_since = commit.generation;
        let settled = self.follower.state_settled();
        self.dropping(settled)
    }

    /// Takes one step; a step behind what is held changes nothing. With a gap what is held stays.
    pub fn follow(&mut self, delta: pb::Delta, decode: StepDecoder<'_>) -> Result<(), SyncError> {
        if delta.generation <= self.generation {
            return Ok(());
        }
        if delta.base_generation != self.generation {
            let text =
                format!("delta {} to {}, but {} is held", delta.base_generation, delta.generation, self.generation);
            return Err(SyncError::new(NackReason::Gap, text));
        }
        let decoded = decode(delta.changes);
        let steps = self.dropping(decoded)?;
        if self.apply(steps, delta.node_count)? {
            self.layout_since = delta.generation;
        }
        self.generation = delta.generation;
        Ok(())
    }

    /// Holds nothing, until the next full transfer.
    pub fn drop_all(&mut self) {
        self.epoch.clear();
        self.generation = 0;
        self.layout_since = 0;
        self.nodes.clear();
        self.names.clear();
        self.index.clear();
        self.pods.clear();
        self.on_node.clear();
        self.objects.clear();
    }

    /// Passes a result on; with an error nothing is held any more.
    fn dropping<R>(&mut self, result: Result<R, SyncError>) -> Result<R, SyncError> {
        if result.is_err() {
            self.drop_all();
        }
        result
    }

    /// Takes the steps and checks the count; true if nodes came, went or moved.
    fn apply(&mut self, steps: Vec<Step>, node_count: u32) -> Result<bool, SyncError> {
        let before = self.nodes.len();
        let moved = steps.iter().any(|step| matches!(step, Step::NodeRemoved { .. }));
        let taken = steps.into_iter().try_for_each(|step| self.take(step));
        self.dropping(taken)?;
        if self.nodes.len() != node_count as usize {
            let text = format!("{} nodes are held, the host has {node_count}", self.nodes.len());
            return self.dropping(Err(SyncError::mismatch(text)));
        }
        Ok(moved || before != self.nodes.len())
    }

    fn take(&mut self, step: Step) -> Result<(), SyncError> {
        match step {
            Step::NodeUpserted { index, name, node } => self.put_node(index, name, *node),
            Step::NodeRemoved { index, name } => self.take_node(index, &name),
            Step::PodUpserted(placed) => self.put_pod(&placed),
            Step::PodRemoved { uid } => self.take_pod(&uid),
            Step::ObjectUpserted { key, object } => self.put_object(&key, &object),
            Step::ObjectRemoved { key } => self.take_object(&key),
        }
    }

    fn put_node(&mut self, index: usize, name: String, node: Node) -> Result<(), SyncError> {
        match self.index.get(&name) {
            None if index == self.nodes.len() => {
                self.index.insert(name.clone(), index);
                self.names.push(name);
                self.nodes.push(node);
            }
            Some(at) if *at == index => self.nodes[index] = node,
            _ => return Err(SyncError::mismatch(format!("node {name:?} can't be at index {index}"))),
        }
        self.follower.node_upserted(index, &self.nodes[index])
    }

    fn take_node(&mut self, index: usize, name: &str) -> Result<(), SyncError> {
        if self.index.get(name) != Some(&index) {
            return Err(SyncError::mismatch(format!("node {name:?} is not at index {index}")));
        }
        let last = self.nodes.len() - 1;
        self.index.remove(name);
        self.nodes.swap_remove(index);
        self.names.swap_remove(index);
        if index != last {
            self.index.insert(self.names[index].clone(), index);
        }
        self.follower.node_removed(index, last)
    }

    /// Counts a pod on its node, and no longer on another.
    pub fn put_pod(&mut self, placed: &Arc<PlacedPod>) -> Result<(), SyncError> {
        if self.pods.get(&placed.uid).is_some_and(|before| before.node_name != placed.node_name) {
            self.take_pod(&placed.uid)?;
        }
        self.pods.insert(placed.uid.clone(), placed.clone());
        self.on_node.entry(placed.node_name.clone()).or_default().insert(placed.uid.clone(), placed.clone());
        self.follower.pod_upserted(placed)
    }

    /// Counts a pod nowhere any more.
    pub fn take_pod(&mut self, uid: &str) -> Result<(), SyncError> {
        let Some(placed) = self.pods.remove(uid) else { return Ok(()) };
        if let Some(there) = self.on_node.get_mut(&placed.node_name) {
            there.remove(uid);
            if there.is_empty() {
                self.on_node.remove(&placed.node_name);
            }
        }
        self.follower.pod_removed(&placed)
    }

    /// The pod that counts under a UID.
    pub fn pod(&self, uid: &str) -> Option<&Arc<PlacedPod>> {
        self.pods.get(uid)
    }

    fn put_object(&mut self, key: &ObjectKey, object: &Bytes) -> Result<(), SyncError> {
        self.objects.insert(key.clone(), object.clone());
        self.follower.object_upserted(key, object)
    }

    fn take_object(&mut self, key: &ObjectKey) -> Result<(), SyncError> {
        if self.objects.remove(key).is_none() {
            return Ok(());
        }
        self.follower.object_removed(key)
    }
}
