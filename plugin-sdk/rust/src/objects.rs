//! What the cluster's state consists of: pods on nodes, and objects of watched kinds by key.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::outcomes::PodStage;
use crate::pb::{self, NackReason};

/// A pod that counts on a node.
#[derive(Clone, Debug)]
pub struct PlacedPod {
    /// The pod.
    pub pod: Arc<Pod>,
    /// `metadata.uid`.
    pub uid: String,
    /// The node; it need not be known.
    pub node_name: String,
    /// Why it counts there.
    pub stage: PodStage,
    /// The attempt that assumed it; 0 in other stages.
    pub attempt: u32,
}

/// Names an object of a watched kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural.
    pub resource: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    pub(crate) fn of(key: Option<pb::ObjectKey>) -> Self {
        let key = key.unwrap_or_default();
        ObjectKey {
            group: key.group,
            version: key.version,
            resource: key.resource,
            namespace: key.namespace,
            name: key.name,
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.resource, self.namespace, self.name)
    }
}

/// Why a message of the state stream can't be applied.
#[derive(Clone, Debug)]
pub(crate) struct SyncError {
    pub reason: NackReason,
    pub text: String,
}

impl SyncError {
    pub fn new(reason: NackReason, text: String) -> Self {
        SyncError { reason, text }
    }

    pub fn bad_object(text: String) -> Self {
        SyncError::new(NackReason::BadObject, text)
    }

    pub fn mismatch(text: String) -> Self {
        SyncError::new(NackReason::Mismatch, text)
    }
}
