//! A pod group, the sets of nodes that it may go to, and what is asked about it as a whole.

use crate::outcomes::PodKey;

/// A pod group, and its pods that have no node; those that have one are among the
/// pods of [`Nodes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodGroup {
    /// `metadata.namespace` of the group and its pods.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// The pods without a node.
    pub pods: Vec<PodKey>,
}

/// A set of nodes that a pod group may go to as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Unique among a group's placements; users see it.
    pub name: String,
    /// Of each node, by index, whether it is one of them.
    pub nodes: Vec<bool>,
}

/// A placement in which a pod group fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedPlacement<'a> {
    /// The placement.
    pub placement: Placement,
    /// The pods that would be placed, each with the index of its node.
    pub assignments: Vec<(&'a PodKey, usize)>,
}

/// How far an attempt at a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementProgress {
    /// The group's pods that are still to be tried.
    pub remaining: usize,
    /// Its pods that have a node.
    pub scheduled: usize,
}

/// A set of pods without which a pod group may fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPreemption {
    /// Their UIDs, at least one.
    pub victims: Vec<String>,
}
