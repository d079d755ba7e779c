//! Where a pod group may go as a whole, and how good each place is.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::Pod;

use crate::bits::{pack_bits, unpack_bits};
use crate::call::{Turn, success};
use crate::errors::{CallError, guarded};
use crate::nodes::Nodes;
use crate::outcomes::{Code, PodKey, Reply};
use crate::pb;
use crate::pod_groups::{Placement, PodGroup, ProposedPlacement};
use crate::session::Unanswered;
use crate::vectors::pack_points;

const GENERATE: &[Code] = &[Code::Skip, Code::Unschedulable, Code::UnschedulableAndUnresolvable];

impl Turn<'_> {
    pub(crate) fn generate_placements(
        &mut self,
        request: &pb::GeneratePlacementsRequest,
    ) -> Result<Reply<pb::GeneratePlacementsResponse>, Unanswered> {
        let pod = self.asked()?;
        let nodes = self.session.nodes(self.head, request.candidates.as_ref())?;
        let (status, placements) = self.generated(&group_of(request.group.as_ref()), &pod, &nodes);
        let generation = self.session.mirror.generation;
        Ok(Reply::Now(pb::GeneratePlacementsResponse { generation, status: Some(status), placements }))
    }

    fn generated(&self, group: &PodGroup, pod: &Pod, nodes: &Nodes<'_>) -> (pb::Status, Vec<pb::Placement>) {
        let Some(function) = &self.functions.generate_placements else { return (skip(), Vec::new()) };
        let given = match guarded("generate_placements", || function(group, pod, nodes)) {
            Ok(given) => given,
            Err(problem) => return (self.failure(&problem), Vec::new()),
        };
        let (status, placements) = self.functions.verdict(given, GENERATE);
        match pack_placements(placements.unwrap_or_default(), nodes) {
            Ok(placements) => (status, placements),
            Err(problem) => (self.failure(&problem), Vec::new()),
        }
    }

    pub(crate) fn score_placements(
        &mut self,
        request: &pb::ScorePlacementsRequest,
    ) -> Result<Reply<pb::ScorePlacementsResponse>, Unanswered> {
        let pod = self.asked()?;
        let nodes = self.session.nodes(self.head, None)?;
        let group = group_of(request.group.as_ref());
        let proposed = request.proposed.iter().map(|each| proposed_of(each, &group, nodes.len()));
        let proposed = proposed.collect::<Result<Vec<_>, _>>().map_err(CallError::invalid)?;
        let packed = match &self.functions.score_placements {
            None => Ok(None),
            Some(function) => guarded("score_placements", || function(&group, &pod, &nodes, &proposed)),
        };
        let packed = packed.and_then(|points| {
            points.map(|points| pack_points(&points, self.functions.normalization, proposed.len())).transpose()
        });
        let (status, scores) = match packed {
            Ok(None) => (skip(), None),
            Ok(scores) => (success(), scores),
            Err(problem) => (self.failure(&problem), None),
        };
        let generation = self.session.mirror.generation;
        Ok(Reply::Now(pb::ScorePlacementsResponse { generation, status: Some(status), scores }))
    }
}

/// The messages, without nodes that were not asked about; a placement that has no
/// node then is none.
///
/// # Errors
/// One has no name or another's, or is not for this many nodes.
fn pack_placements(placements: Vec<Placement>, nodes: &Nodes<'_>) -> Result<Vec<pb::Placement>, String> {
    let mut names = HashSet::new();
    let mut packed = Vec::new();
    for Placement { name, nodes: mut chosen } in placements {
        if name.is_empty() || chosen.len() != nodes.len() {
            return Err(format!(
                "placement {name:?}: expected a name and {} nodes, got {}",
                nodes.len(),
                chosen.len()
            ));
        }
        if !names.insert(name.clone()) {
            return Err(format!("placement {name:?}: two have this name"));
        }
        chosen.iter_mut().enumerate().for_each(|(index, each)| *each &= nodes.is_asked(index));
        if chosen.contains(&true) {
            packed.push(pb::Placement { name, bitmap: pack_bits(&chosen) });
        }
    }
    Ok(packed)
}

/// The group that a message is about.
pub(crate) fn group_of(message: Option<&pb::PodGroup>) -> PodGroup {
    let message = message.cloned().unwrap_or_default();
    let pods = message.pods.iter().map(PodKey::of).collect();
    PodGroup { namespace: message.namespace, name: message.name, pods }
}

/// A proposal about this group and so many nodes.
///
/// # Errors
/// The message is about another group, or other nodes.
fn proposed_of<'a>(
    message: &pb::ProposedPlacement,
    group: &'a PodGroup,
    count: usize,
) -> Result<ProposedPlacement<'a>, String> {
    let pb::ProposedPlacement { placement, pod_indices, node_indices } = message;
    if pod_indices.len() != node_indices.len() {
        return Err(format!("proposed: {} pods on {} nodes", pod_indices.len(), node_indices.len()));
    }
    let assigned = |(pod, node): (&u32, &u32)| match group.pods.get(*pod as usize) {
        Some(key) if (*node as usize) < count => Ok((key, *node as usize)),
        _ => Err(format!("proposed: pod {pod} of {} on node {node} of {count}", group.pods.len())),
    };
    let assignments = pod_indices.iter().zip(node_indices).map(assigned).collect::<Result<_, _>>()?;
    let pb::Placement { name, bitmap } = placement.clone().unwrap_or_default();
    let nodes = unpack_bits(&bitmap, count).map_err(|problem| format!("proposed: {problem}"))?;
    Ok(ProposedPlacement { placement: Placement { name, nodes }, assignments })
}

/// No opinion.
fn skip() -> pb::Status {
    pb::Status { code: pb::Code::Skip.into(), reasons: Vec::new() }
}
