//! SchedulingService: a pod goes to nodes whose label has the value that its own label of that key has.
//!
//! Nodes without the label are open to all pods; nodes with the pod's own value are better.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use crate::held::{Node, Object};
use crate::pb::scheduling_service_server::SchedulingService;
use crate::pb::{
    Call, Candidates, Code, FilterRequest, FilterResponse, FilterScoreRequest, FilterScoreResponse,
    Normalization, PodRef, Reason, ScoreRequest, ScoreResponse, Scores, Verdicts, scores, verdicts,
};
use crate::session::{Session, precondition};

const PASSES: u8 = 0;
/// Verdicts are rows of the reason table, counted from 1.
const OTHER_VALUE: u8 = 1;
const BEST: u8 = 100;

/// What is found for each node of a generation.
struct Answer {
    generation: i64,
    verdicts: Vec<u8>,
    scores: Vec<u8>,
    /// Whether a node that was asked about passes.
    any_passes: bool,
}

/// Says whether a node with this value of the label can take the pod, and how good it is.
fn verdict(pod: Option<&String>, node: Option<&String>) -> (u8, u8) {
    match node {
        None => (PASSES, 0),
        Some(_) if node == pod => (PASSES, BEST),
        Some(_) => (OTHER_VALUE, 0),
    }
}

pub struct Scheduling {
    pub session: Arc<Session>,
}

impl Scheduling {
    async fn answer(
        &self,
        call: Option<Call>,
        candidates: Option<Candidates>,
    ) -> Result<Answer, Status> {
        let mut call = call.ok_or_else(|| Status::invalid_argument("a request without a head"))?;
        let label = self.session.label(&call.profile)?;
        let mut held = self.session.held.subscribe();
        let state = self.session.state_for(&mut call, &mut held).await?;
        let pod = pod_of(call.pod)?;
        let value = pod.metadata.labels.get(&label);
        let asked = asked_about(candidates, &state.nodes)?;
        let of_node = |node: &Node| verdict(value, node.labels.get(&label));
        let (verdicts, scores): (Vec<u8>, Vec<u8>) = state.nodes.iter().map(of_node).unzip();
        let any_passes = verdicts.iter().zip(&asked).any(|(code, asked)| *asked && *code == PASSES);
        Ok(Answer { generation: state.generation, verdicts, scores, any_passes })
    }
}

#[tonic::async_trait]
impl SchedulingService for Scheduling {
    async fn filter(
        &self,
        request: Request<FilterRequest>,
    ) -> Result<Response<FilterResponse>, Status> {
        let FilterRequest { call, candidates } = request.into_inner();
        Ok(Response::new(self.answer(call, candidates).await?.filter()))
    }

    async fn score(
        &self,
        request: Request<ScoreRequest>,
    ) -> Result<Response<ScoreResponse>, Status> {
        let ScoreRequest { call, candidates } = request.into_inner();
        Ok(Response::new(self.answer(call, candidates).await?.score()))
    }

    async fn filter_score(
        &self,
        request: Request<FilterScoreRequest>,
    ) -> Result<Response<FilterScoreResponse>, Status> {
        let FilterScoreRequest { call, candidates } = request.into_inner();
        let answer = self.answer(call, candidates).await?;
        let score = answer.any_passes.then(|| answer.score());
        Ok(Response::new(FilterScoreResponse { filter: Some(answer.filter()), score }))
    }
}

impl Answer {
    fn filter(&self) -> FilterResponse {
        let reason = Reason {
            code: Code::UnschedulableAndUnresolvable.into(),
            text: "node(s) had another value of the pod's label".into(),
        };
        FilterResponse {
            generation: self.generation,
            status: Some(success()),
            verdicts: Some(Verdicts {
                codes: Some(verdicts::Codes::Each(self.verdicts.clone())),
                reasons: vec![reason],
            }),
        }
    }

    fn score(&self) -> ScoreResponse {
        ScoreResponse {
            generation: self.generation,
            status: Some(success()),
            scores: Some(Scores {
                values: Some(scores::Values::Uint8(self.scores.clone())),
                normalization: Normalization::None.into(),
            }),
        }
    }
}

fn success() -> crate::pb::Status {
    crate::pb::Status { code: Code::Success.into(), reasons: Vec::new() }
}

/// Reads the pod. None is kept: the host sends it again where a call came without it.
fn pod_of(pod: Option<PodRef>) -> Result<Object, Status> {
    let object = pod.and_then(|pod| pod.object);
    let object = object.ok_or_else(|| precondition("POD_UNKNOWN", "the pod's object is needed"))?;
    serde_json::from_slice(&object)
        .map_err(|error| Status::invalid_argument(format!("the pod: {error}")))
}

/// Spreads the bitmap over the nodes; without one, all are asked about.
fn asked_about(candidates: Option<Candidates>, nodes: &[Node]) -> Result<Vec<bool>, Status> {
    let Some(Candidates { bitmap, .. }) = candidates else { return Ok(vec![true; nodes.len()]) };
    if bitmap.len() != nodes.len().div_ceil(8) {
        return Err(Status::invalid_argument("a bitmap for another number of nodes"));
    }
    Ok((0..nodes.len()).map(|index| bitmap[index / 8] >> (index % 8) & 1 == 1).collect())
}
