//! The author's functions that follow the state.

use k8s_openapi::api::core::v1::Node;

use crate::errors::guarded;
use crate::mirror::Follower;
use crate::objects::{ObjectKey, PlacedPod, SyncError};
use crate::plugin::Functions;

impl Follower for Functions {
    fn state_reset(&self, changed: bool) -> Result<(), SyncError> {
        hook("state_reset", self.state_reset.as_deref().map(|hook| || hook(changed)))
    }

    fn state_settled(&self) -> Result<(), SyncError> {
        hook("state_settled", self.state_settled.as_deref())
    }

    fn node_upserted(&self, index: usize, node: &Node) -> Result<(), SyncError> {
        hook("node_upserted", self.node_upserted.as_deref().map(|hook| || hook(index, node)))
    }

    fn node_removed(&self, index: usize, last: usize) -> Result<(), SyncError> {
        hook("node_removed", self.node_removed.as_deref().map(|hook| || hook(index, last)))
    }

    fn pod_upserted(&self, placed: &PlacedPod) -> Result<(), SyncError> {
        hook("pod_upserted", self.pod_upserted.as_deref().map(|hook| || hook(placed)))
    }

    fn pod_removed(&self, placed: &PlacedPod) -> Result<(), SyncError> {
        hook("pod_removed", self.pod_removed.as_deref().map(|hook| || hook(placed)))
    }

    fn object_upserted(&self, key: &ObjectKey, object: &[u8]) -> Result<(), SyncError> {
        let Some(upserted) = self.object_upserted.as_deref() else { return Ok(()) };
        guarded("object_upserted", || upserted(key, object))
            .map_err(SyncError::bad_object)?
            .map_err(|problem| SyncError::bad_object(format!("{key}: {problem}")))
    }

    fn object_removed(&self, key: &ObjectKey) -> Result<(), SyncError> {
        hook("object_removed", self.object_removed.as_deref().map(|hook| || hook(key)))
    }
}

/// Calls the author, if there is a function; one that fails may have left the
/// author's columns wrong, so everything is asked for anew.
fn hook(name: &str, function: Option<impl FnOnce()>) -> Result<(), SyncError> {
    match function {
        None => Ok(()),
        Some(function) => guarded(name, function).map_err(SyncError::bad_object),
    }
}
