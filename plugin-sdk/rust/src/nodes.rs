//! All nodes of a generation, as a function that answers for them sees them.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Node;

use crate::mirror::{Mirror, ObjectKey, PlacedPod};

/// All nodes of the generation that a call is about, by index.
pub struct Nodes<'a> {
    mirror: &'a Mirror,
    /// A bit a node; none means all.
    candidates: Option<Cow<'a, [u8]>>,
}

impl<'a> Nodes<'a> {
    /// The nodes of a mirror, of which a bitmap says which are asked about.
    ///
    /// # Errors
    /// The bitmap is not as long as there are nodes.
    pub(crate) fn of(mirror: &'a Mirror, candidates: Option<Cow<'a, [u8]>>) -> Result<Self, String> {
        let wanted = mirror.len().div_ceil(8);
        match &candidates {
            Some(bitmap) if bitmap.len() != wanted => {
                Err(format!("a bitmap of {} entries has {wanted} bytes, not {}", mirror.len(), bitmap.len()))
            }
            _ => Ok(Nodes { mirror, candidates }),
        }
    }

    /// The number of nodes, asked about or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mirror.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mirror.len() == 0
    }

    /// The node at an index.
    #[must_use]
    pub fn at(&self, index: usize) -> &'a Node {
        self.mirror.node_at(index)
    }

    /// Whether the answer for that node matters.
    #[must_use]
    pub fn asked(&self, index: usize) -> bool {
        match &self.candidates {
            None => true,
            Some(bitmap) => bitmap[index >> 3] >> (index & 7) & 1 == 1,
        }
    }

    /// The nodes that are asked about, with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'a Node)> + '_ {
        (0..self.len()).filter(|index| self.asked(*index)).map(|index| (index, self.mirror.node_at(index)))
    }

    /// A node's index by name.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.mirror.index_of(name)
    }

    /// The pods that count on a node; none without [`Plugin::wants_pods`](crate::Plugin::wants_pods).
    pub fn pods_on(&self, node_name: &str) -> impl Iterator<Item = &'a PlacedPod> + use<'a> {
        self.mirror.pods_on(node_name)
    }

    /// A watched object as JSON.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<&'a [u8]> {
        self.mirror.object(key)
    }

    /// All watched objects as JSON.
    pub fn objects(&self) -> impl Iterator<Item = (&'a ObjectKey, &'a [u8])> + use<'a> {
        self.mirror.objects()
    }

    /// How many nodes are asked about.
    pub(crate) fn count(&self) -> usize {
        match &self.candidates {
            None => self.len(),
            Some(_) => (0..self.len()).filter(|index| self.asked(*index)).count(),
        }
    }
}
