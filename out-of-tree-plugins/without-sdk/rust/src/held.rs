//! The plugin's copy of the cluster: all nodes by index, up to one generation.

use std::collections::HashMap;

use serde::Deserialize;

use crate::pb::{Change, Delta, NackReason, NodeRemove, NodeUpsert, change};

/// What any API object holds that the plugin reads.
#[derive(Deserialize)]
pub struct Object {
    pub metadata: Metadata,
}

#[derive(Deserialize)]
pub struct Metadata {
    #[serde(default)]
    pub labels: HashMap<String, String>,
}

pub struct Node {
    name: String,
    pub labels: HashMap<String, String>,
}

/// Why a message on the stream is refused.
#[derive(Debug)]
pub struct Refusal {
    pub reason: NackReason,
    pub message: String,
}

pub fn refusal(reason: NackReason, message: impl Into<String>) -> Refusal {
    Refusal { reason, message: message.into() }
}

/// One state of the cluster; generation 0 means that nothing is held.
#[derive(Default)]
pub struct Held {
    pub epoch: String,
    pub generation: i64,
    /// The first generation since which no node has changed its index.
    pub indices_since: i64,
    pub nodes: Vec<Node>,
}

impl Held {
    /// Builds the state that a full transfer brought.
    pub fn transferred(
        epoch: String,
        generation: i64,
        changes: Vec<Change>,
        node_count: u32,
    ) -> Result<Held, Refusal> {
        let mut held = Held { epoch, generation, indices_since: generation, nodes: Vec::new() };
        held.apply(changes, node_count)?;
        Ok(held)
    }

    /// Takes one step. A step that is held already is skipped.
    pub fn follow(&mut self, delta: Delta) -> Result<(), Refusal> {
        if delta.generation <= self.generation {
            return Ok(());
        }
        if delta.base_generation != self.generation {
            let message = format!("{} is held, not {}", self.generation, delta.base_generation);
            return Err(refusal(NackReason::Gap, message));
        }
        if self.apply(delta.changes, delta.node_count)? {
            self.indices_since = delta.generation;
        }
        self.generation = delta.generation;
        Ok(())
    }

    /// Applies the changes in order, and says whether indices are others than before.
    fn apply(&mut self, changes: Vec<Change>, node_count: u32) -> Result<bool, Refusal> {
        let before = self.nodes.len();
        let mut removed = false;
        for change in changes {
            match change.change {
                Some(change::Change::NodeUpsert(node)) => self.put(node)?,
                Some(change::Change::NodeRemove(node)) => {
                    self.remove(&node)?;
                    removed = true;
                }
                // Pods and objects of other kinds were not asked for.
                _ => {}
            }
        }
        if self.nodes.len() != node_count as usize {
            let message = format!("{} nodes are held, not {node_count}", self.nodes.len());
            return Err(refusal(NackReason::Mismatch, message));
        }
        Ok(removed || before != self.nodes.len())
    }

    fn put(&mut self, upsert: NodeUpsert) -> Result<(), Refusal> {
        let object: Object = serde_json::from_slice(&upsert.object)
            .map_err(|error| refusal(NackReason::BadObject, error.to_string()))?;
        let node = Node { name: upsert.name, labels: object.metadata.labels };
        let index = upsert.index as usize;
        if index == self.nodes.len() {
            self.nodes.push(node);
        } else if self.nodes.get(index).is_some_and(|there| there.name == node.name) {
            self.nodes[index] = node;
        } else {
            return Err(refusal(NackReason::Mismatch, format!("{} is not at {index}", node.name)));
        }
        Ok(())
    }

    fn remove(&mut self, node: &NodeRemove) -> Result<(), Refusal> {
        let index = node.index as usize;
        if self.nodes.get(index).is_none_or(|there| there.name != node.name) {
            return Err(refusal(NackReason::Mismatch, format!("{} is not at {index}", node.name)));
        }
        self.nodes.swap_remove(index);
        Ok(())
    }
}
