//! Filter on simulated states, for the dry run of preemption.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::call::Turn;
use crate::errors::{CallError, NOT_SYNCED};
use crate::finding::node_verdicts;
use crate::mirror::Mirror;
use crate::nodes::Nodes;
use crate::objects::{PlacedPod, SyncError};
use crate::outcomes::{Code, Reply, Verdicts};
use crate::pb::{self, verdicts::Codes};
use crate::session::Unanswered;
use crate::steps::{decode_pod, placed_pod};
use crate::vectors::{codes_have_reasons, pack_reasons};

/// What takes an overlay off again: the pod under a UID as it was.
type Undo = Vec<(String, Option<Arc<PlacedPod>>)>;

/// Why overlays have no verdicts.
enum Failure {
    /// The author's functions contradict the protocol.
    Author(String),
    Call(CallError),
}

impl Turn<'_> {
    /// Asks Filter about each overlay. The pods are taken from the mirror and put
    /// into it, so the author's functions and hooks see them like any others, and
    /// everything is put back before the answer.
    pub(crate) fn filter_overlays(
        &mut self,
        request: &pb::FilterOverlaysRequest,
    ) -> Result<Reply<pb::FilterOverlaysResponse>, Unanswered> {
        let pod = self.asked()?;
        let status = self.pre_filtered(&pod);
        let count = self.session.nodes(self.head, None)?.len();
        if let Some(overlay) = request.overlays.iter().find(|overlay| overlay.node_index as usize >= count) {
            return Err(
                CallError::invalid(format!("overlay of node {}: there are {count}", overlay.node_index)).into()
            );
        }
        let generation = self.session.mirror.generation;
        let response =
            |status, verdicts| Reply::Now(pb::FilterOverlaysResponse { generation, status: Some(status), verdicts });
        if Code::of(status.code) != Code::Success {
            return Ok(response(status, None));
        }
        match self.overlaid(&pod, &request.overlays) {
            Ok(verdicts) => Ok(response(status, Some(verdicts))),
            Err(Failure::Author(problem)) => Ok(response(self.failure(&problem), None)),
            Err(Failure::Call(error)) => Err(error.into()),
        }
    }

    /// Answers all overlays: one by one, unless no node's verdict depends on
    /// another; then as many at once as touch different nodes.
    fn overlaid(&mut self, pod: &Pod, overlays: &[pb::Overlay]) -> Result<pb::Verdicts, Failure> {
        let mut all = Verdicts { codes: vec![0; overlays.len()], reasons: Vec::new() };
        let mut rest: Vec<usize> = (0..overlays.len()).collect();
        while !rest.is_empty() {
            let mut seen = HashSet::new();
            let together =
                |at: &usize| (seen.is_empty() || self.functions.node_local) && seen.insert(overlays[*at].node_index);
            let (round, later) = rest.into_iter().partition(together);
            rest = later;
            let verdicts = self.overlay_round(pod, overlays, &round)?;
            for at in round {
                let code = verdicts.codes[overlays[at].node_index as usize];
                if code > 0 {
                    all.codes[at] = all.row(verdicts.reasons[usize::from(code) - 1].clone());
                }
            }
        }
        let reasons = pack_reasons(&all.reasons).map_err(Failure::Author)?;
        Ok(pb::Verdicts { codes: Some(Codes::Each(all.codes.into())), reasons })
    }

    /// Puts the overlays on, asks about their nodes, and takes them off.
    fn overlay_round(&mut self, pod: &Pod, overlays: &[pb::Overlay], round: &[usize]) -> Result<Verdicts, Failure> {
        let mirror = &mut self.session.mirror;
        let mut candidates = vec![0_u8; mirror.len().div_ceil(8)];
        let mut undo = Undo::new();
        let put_on = round.iter().try_for_each(|at| {
            let overlay = &overlays[*at];
            candidates[overlay.node_index as usize >> 3] |= 1 << (overlay.node_index & 7);
            mirror.put_on(overlay, &mut undo)
        });
        let verdicts = put_on.map(|()| match Nodes::of(mirror, Cow::Owned(candidates)) {
            Ok(nodes) => node_verdicts(self.functions, pod, &nodes),
            Err(problem) => Err(problem),
        });
        if let Err(error) = mirror.take_off(undo) {
            mirror.drop_all();
            let text = format!("an overlay could not be taken off: {}", error.text);
            return Err(Failure::Call(CallError::refused(NOT_SYNCED, text)));
        }
        let verdicts = verdicts
            .map_err(|error| Failure::Call(CallError::invalid(format!("overlay: {}", error.text))))?
            .map_err(Failure::Author)?;
        codes_have_reasons(&verdicts, |_| true).map_err(Failure::Author)?;
        Ok(verdicts)
    }
}

impl Mirror {
    /// Applies one overlay; `undo` gets what takes it off.
    fn put_on(&mut self, overlay: &pb::Overlay, undo: &mut Undo) -> Result<(), SyncError> {
        let node_name = self.name_at(overlay.node_index as usize).to_string();
        for uid in &overlay.removed_pod_uids {
            let Some(before) = self.pod(uid).filter(|placed| placed.node_name == node_name).cloned() else {
                continue;
            };
            undo.push((uid.clone(), Some(before)));
            self.take_pod(uid)?;
        }
        for upsert in &overlay.added_pods {
            let upsert = pb::PodUpsert { node_name: node_name.clone(), ..upsert.clone() };
            let placed = placed_pod(upsert, &decode_pod)?;
            undo.push((placed.uid.clone(), self.pod(&placed.uid).cloned()));
            self.put_pod(&placed)?;
        }
        Ok(())
    }

    fn take_off(&mut self, undo: Undo) -> Result<(), SyncError> {
        undo.into_iter().rev().try_for_each(|(uid, before)| match before {
            Some(before) => self.put_pod(&before),
            None => self.take_pod(&uid),
        })
    }
}
