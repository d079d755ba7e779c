//! The calls that look for a node: from the gate of the queue to making room.

use k8s_openapi::api::core::v1::Pod;

use crate::call::{Turn, success};
use crate::errors::{CallError, guarded};
use crate::nodes::Nodes;
use crate::outcomes::{Code, Nomination, Reply, Verdicts};
use crate::pb;
use crate::plugin::Functions;
use crate::session::Unanswered;
use crate::vectors::{pack_scores, pack_verdicts, unpack_verdicts};

pub(crate) const REJECTIONS: &[Code] = &[Code::Unschedulable, Code::UnschedulableAndUnresolvable];
pub(crate) const REJECTIONS_OR_PENDING: &[Code] =
    &[Code::Unschedulable, Code::UnschedulableAndUnresolvable, Code::Pending];
const PRE_FILTER: &[Code] = &[Code::Skip, Code::Unschedulable, Code::UnschedulableAndUnresolvable, Code::Pending];

type Answer<R> = Result<Reply<R>, Unanswered>;

/// Filter's answer, how many nodes passed and how many were turned down, and those left to score.
struct Filtered<'a> {
    response: pb::FilterResponse,
    counts: Option<(usize, usize)>,
    left: Option<Nodes<'a>>,
}

impl Turn<'_> {
    pub(crate) fn pre_enqueue(&mut self, _: &pb::PreEnqueueRequest) -> Answer<pb::PreEnqueueResponse> {
        let pod = self.pod()?;
        let Some(function) = &self.functions.pre_enqueue else {
            return Ok(Reply::Now(pb::PreEnqueueResponse { status: Some(success()) }));
        };
        Ok(self.functions.verdict_of(
            "pre_enqueue",
            REJECTIONS_OR_PENDING,
            || function(&self.call, &pod),
            |status, _| pb::PreEnqueueResponse { status: Some(status) },
        ))
    }

    pub(crate) fn filter(&mut self, request: &pb::FilterRequest) -> Answer<pb::FilterResponse> {
        let pod = self.asked()?;
        let Filtered { response, counts, .. } = self.filtered(&pod, request.candidates.as_ref())?;
        self.verdicts = counts;
        Ok(Reply::Now(response))
    }

    pub(crate) fn score(&mut self, request: &pb::ScoreRequest) -> Answer<pb::ScoreResponse> {
        let pod = self.asked()?;
        let nodes = self.session.nodes(self.head, request.candidates.as_ref())?;
        Ok(Reply::Now(self.scored(&pod, &nodes)))
    }

    pub(crate) fn filter_score(&mut self, request: &pb::FilterScoreRequest) -> Answer<pb::FilterScoreResponse> {
        let pod = self.asked()?;
        let Filtered { response, counts, left } = self.filtered(&pod, request.candidates.as_ref())?;
        let score = left.filter(|nodes| nodes.count() > 0).map(|nodes| self.scored(&pod, &nodes));
        self.verdicts = counts;
        Ok(Reply::Now(pb::FilterScoreResponse { filter: Some(response), score }))
    }

    fn filtered<'s>(&'s self, pod: &Pod, candidates: Option<&'s pb::Candidates>) -> Result<Filtered<'s>, CallError> {
        let status = self.pre_filtered(pod);
        let nodes = self.session.nodes(self.head, candidates)?;
        let generation = self.session.mirror.generation;
        let response = |status, verdicts| pb::FilterResponse { generation, status: Some(status), verdicts };
        let without = |status, left| Ok(Filtered { response: response(status, None), counts: None, left });
        match Code::of(status.code) {
            Code::Success => {}
            Code::Skip => return without(status, Some(nodes)),
            _ => return without(status, None),
        }
        let packed = node_verdicts(self.functions, pod, &nodes).and_then(|verdicts| pack_verdicts(verdicts, &nodes));
        match packed {
            Ok(packed) => {
                let counts = Some((nodes.count() - packed.rejected, packed.rejected));
                let response = response(status, Some(packed.message));
                Ok(Filtered { response, counts, left: Some(nodes.only(packed.passing)) })
            }
            Err(problem) => without(self.failure(&problem), None),
        }
    }

    /// `PreFilter`'s verdict on the pod.
    pub(crate) fn pre_filtered(&self, pod: &Pod) -> pb::Status {
        let Some(function) = &self.functions.pre_filter else { return success() };
        match guarded("pre_filter", || function(&self.call, pod)) {
            Ok(given) => self.functions.verdict(given, PRE_FILTER).0,
            Err(problem) => self.failure(&problem),
        }
    }

    fn scored(&self, pod: &Pod, nodes: &Nodes<'_>) -> pb::ScoreResponse {
        let generation = self.session.mirror.generation;
        let response = |status, scores| pb::ScoreResponse { generation, status: Some(status), scores };
        let skip = pb::Status { code: pb::Code::Skip.into(), reasons: Vec::new() };
        let Some(function) = &self.functions.score_nodes else { return response(skip, None) };
        let packed = match guarded("score", || function(pod, nodes)) {
            Ok(Ok(None)) => return response(skip, None),
            Ok(Ok(Some(points))) => pack_scores(points, self.functions.normalization, nodes),
            Ok(Err(problem)) | Err(problem) => Err(problem),
        };
        match packed {
            Ok(scores) => response(success(), Some(scores)),
            Err(problem) => response(self.failure(&problem), None),
        }
    }

    pub(crate) fn post_filter(&mut self, request: &pb::PostFilterRequest) -> Answer<pb::PostFilterResponse> {
        let pod = self.asked()?;
        let nodes = self.session.nodes(self.head, None)?;
        let verdicts = unpack_verdicts(request.verdicts.as_ref(), nodes.len()).map_err(CallError::invalid)?;
        let Some(function) = &self.functions.post_filter else {
            let reasons = vec![format!("{} makes no room", self.functions.name)];
            let status = pb::Status { code: pb::Code::Unschedulable.into(), reasons };
            return Ok(Reply::Now(pb::PostFilterResponse { status: Some(status), ..Default::default() }));
        };
        Ok(self.functions.verdict_of(
            "post_filter",
            REJECTIONS,
            || Reply::Now(function(&self.call, &pod, &nodes, &verdicts)),
            post_filtered,
        ))
    }
}

fn post_filtered(status: pb::Status, nomination: Option<Nomination>) -> pb::PostFilterResponse {
    let (nominated_node_name, victim_uids) = match nomination {
        None | Some(Nomination::Keep) => (None, Vec::new()),
        Some(Nomination::Clear) => (Some(String::new()), Vec::new()),
        Some(Nomination::Node { name, victims }) => (Some(name), victims),
    };
    pb::PostFilterResponse { status: Some(status), nominated_node_name, victim_uids }
}

/// Filter's verdicts; without a function all nodes pass.
pub(crate) fn node_verdicts(functions: &Functions, pod: &Pod, nodes: &Nodes<'_>) -> Result<Verdicts, String> {
    match &functions.filter_nodes {
        Some(function) => guarded("filter", || function(pod, nodes))?,
        None => Ok(Verdicts { codes: vec![0; nodes.entries()], reasons: Vec::new() }),
    }
}
