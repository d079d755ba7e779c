//! What one plugin process knows: its mirror, its profiles, and the pods it was asked about.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::errors::{CallError, GENERATION_GONE, NOT_CONFIGURED, NOT_SYNCED, POD_UNKNOWN};
use crate::mirror::Mirror;
use crate::nodes::Nodes;
use crate::objects::SyncError;
use crate::outcomes::Profile;
use crate::pb::{self, NackReason};
use crate::plugin::Functions;
use crate::pod_memory::PodMemory;
use crate::steps::steps_of;

/// Why a call has no answer at present.
pub(crate) enum Unanswered {
    /// Its generation is not held yet; the state stream brings it.
    Behind,
    Failed(CallError),
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        Unanswered::Failed(error)
    }
}

/// What calls and the state stream share, one at a time.
pub(crate) struct Session {
    pub mirror: Mirror,
    pub profiles: HashMap<String, Profile>,
    pub pods: PodMemory,
    /// Counts Sync streams: the one opened last counts.
    pub stream: u64,
}

impl Session {
    pub fn new(functions: Arc<Functions>) -> Self {
        Session { mirror: Mirror::new(functions), profiles: HashMap::new(), pods: PodMemory::default(), stream: 0 }
    }

    /// Configured and synced.
    pub fn is_ready(&self) -> bool {
        !self.profiles.is_empty() && self.mirror.generation > 0
    }

    /// Takes one step of the state, knowing the pods that calls have brought.
    pub fn follow(&mut self, delta: pb::Delta) -> Result<(), SyncError> {
        let Session { mirror, pods, .. } = self;
        mirror.follow(delta, &|changes| steps_of(changes, &|uid, data| pods.decode(uid, data)))
    }

    /// Holds the generation that the call is about, by its own deltas if they reach so far.
    pub fn catch_up(&mut self, head: &pb::Call) -> Result<(), Unanswered> {
        if !self.profiles.contains_key(&head.profile) {
            return Err(
                CallError::refused(NOT_CONFIGURED, format!("profile {:?} was not configured", head.profile)).into()
            );
        }
        self.check_epoch(head)?;
        for delta in &head.deltas {
            if delta.generation <= self.mirror.generation {
                continue;
            }
            match self.follow(delta.clone()) {
                Ok(()) => {}
                // The stream brings what is missing.
                Err(error) if error.reason == NackReason::Gap => break,
                Err(error) => return Err(CallError::refused(NOT_SYNCED, error.text).into()),
            }
        }
        if head.generation > self.mirror.generation {
            return Err(Unanswered::Behind);
        }
        Ok(())
    }

    fn check_epoch(&self, head: &pb::Call) -> Result<(), CallError> {
        if self.mirror.generation == 0 || head.epoch != self.mirror.epoch {
            let text = format!("epoch {:?} is held, not {:?}", self.mirror.epoch, head.epoch);
            return Err(CallError::refused(NOT_SYNCED, text));
        }
        Ok(())
    }

    /// The pod that the call is about, as sent or as remembered from an earlier call of the attempt.
    pub fn pod(&mut self, reference: &pb::PodRef) -> Result<Arc<Pod>, CallError> {
        match &reference.object {
            Some(data) => self.pods.put(reference, data).map_err(|error| {
                CallError::invalid(format!("pod {}/{}: {error}", reference.namespace, reference.name))
            }),
            None => self.pods.get(&reference.uid, reference.attempt).ok_or_else(|| {
                let text = format!("pod {}/{}: its object is needed", reference.namespace, reference.name);
                CallError::refused(POD_UNKNOWN, text)
            }),
        }
    }

    /// All nodes at the call's indices.
    pub fn nodes<'a>(
        &'a self,
        head: &pb::Call,
        candidates: Option<&'a pb::Candidates>,
    ) -> Result<Nodes<'a>, CallError> {
        if head.generation < self.mirror.layout_since {
            let text =
                format!("node indices of generation {} ended at {}", head.generation, self.mirror.layout_since);
            return Err(CallError::refused(GENERATION_GONE, text));
        }
        Nodes::asked_by(&self.mirror, candidates)
            .map_err(|problem| CallError::invalid(format!("candidates: {problem}")))
    }
}
