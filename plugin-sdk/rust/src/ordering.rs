//! Where pods stand in the queue.

use crate::errors::{CallError, NOT_CONFIGURED, guarded};
use crate::outcomes::SortKey;
use crate::pb;
use crate::plugin::Functions;
use crate::session::Session;

impl Session {
    /// Says where pods stand; one that the plugin fails for has the key 0.
    pub fn sort_keys(
        &mut self,
        functions: &Functions,
        request: &pb::SortKeysRequest,
    ) -> Result<pb::SortKeysResponse, CallError> {
        if !self.profiles.contains_key(&request.profile) {
            let text = format!("profile {:?} was not configured", request.profile);
            return Err(CallError::refused(NOT_CONFIGURED, text));
        }
        // What fails in these two was logged, and the plugin's own affair.
        if let Some(function) = functions.queue_reset.as_ref().filter(|_| request.anew) {
            let _ = guarded("queue_reset", || function(&request.profile));
        }
        if let Some(function) = functions.pods_left.as_ref().filter(|_| !request.left_uids.is_empty()) {
            let _ = guarded("pods_left", || function(&request.left_uids));
        }
        let keys = request.pods.iter().map(|pod| self.sort_key(functions, pod).message()).collect();
        Ok(pb::SortKeysResponse { keys })
    }

    fn sort_key(&mut self, functions: &Functions, reference: &pb::PodRef) -> SortKey {
        let (Some(pod), Some(function)) = (self.waiting(reference), &functions.sort_key) else {
            return SortKey::default();
        };
        guarded("sort_key", || function(&pod)).unwrap_or_default()
    }
}
