//! Pod groups as a whole: whether one may go, and which pods could be evicted for it.

use crate::call::{Turn, success};
use crate::errors::{CallError, guarded};
use crate::finding::REJECTIONS;
use crate::outcomes::{Code, Reply};
use crate::pb;
use crate::placements::group_of;
use crate::pod_groups::PlacementProgress;
use crate::session::Unanswered;
use crate::vectors::unpack_verdicts;

const VERDICTS: &[Code] = &[Code::Wait, Code::Unschedulable];

impl Turn<'_> {
    pub(crate) fn placement_feasible(
        &mut self,
        request: &pb::PlacementFeasibleRequest,
    ) -> Result<Reply<pb::PlacementFeasibleResponse>, Unanswered> {
        let pod = self.pod()?;
        let group = group_of(request.group.as_ref());
        let verdict = |each: &pb::PlacementProgress| {
            let Some(function) = &self.functions.placement_feasible else { return success() };
            let progress =
                PlacementProgress { remaining: each.remaining as usize, scheduled: each.scheduled as usize };
            match guarded("placement_feasible", || function(&group, &pod, progress)) {
                Ok(given) => self.functions.verdict(given, VERDICTS).0,
                Err(problem) => self.failure(&problem),
            }
        };
        let verdicts = request.progress.iter().map(verdict).collect();
        Ok(Reply::Now(pb::PlacementFeasibleResponse { verdicts }))
    }

    pub(crate) fn pod_group_post_filter(
        &mut self,
        request: &pb::PodGroupPostFilterRequest,
    ) -> Result<Reply<pb::PodGroupPostFilterResponse>, Unanswered> {
        let pod = self.asked()?;
        let nodes = self.session.nodes(self.head, None)?;
        let group = group_of(request.group.as_ref());
        let verdicts = unpack_verdicts(request.verdicts.as_ref(), nodes.len()).map_err(CallError::invalid)?;
        let (status, proposals) = match &self.functions.pod_group_post_filter {
            None => {
                let reasons = vec![format!("{} makes no room", self.functions.name)];
                (pb::Status { code: pb::Code::Unschedulable.into(), reasons }, None)
            }
            Some(function) => match guarded("pod_group_post_filter", || function(&group, &pod, &nodes, &verdicts)) {
                Ok(given) => self.functions.verdict(given, REJECTIONS),
                Err(problem) => (self.failure(&problem), None),
            },
        };
        let proposals = proposals.unwrap_or_default();
        let generation = self.session.mirror.generation;
        if proposals.iter().any(|each| each.victims.is_empty()) {
            let status = Some(self.failure("a proposal evicts no pod"));
            return Ok(Reply::Now(pb::PodGroupPostFilterResponse { generation, status, proposals: Vec::new() }));
        }
        let proposals = proposals.into_iter().map(|each| pb::GroupPreemption { victim_uids: each.victims }).collect();
        Ok(Reply::Now(pb::PodGroupPostFilterResponse { generation, status: Some(status), proposals }))
    }
}
