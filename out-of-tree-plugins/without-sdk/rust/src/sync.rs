//! StateService: one stream of the host's, from its Begin on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::held::{Held as State, Refusal, refusal};
use crate::pb::state_service_server::StateService;
use crate::pb::sync_request::Body;
use crate::pb::sync_response::Body as Answer;
use crate::pb::{Ack, Begin, Change, Commit, Held, Nack, NackReason, SyncRequest, SyncResponse};
use crate::session::Session;

/// What the stream expects next.
enum Stage {
    Waiting,
    Transferring { epoch: String, changes: Vec<Change> },
    Following,
}

pub struct Sync {
    pub session: Arc<Session>,
}

#[tonic::async_trait]
impl StateService for Sync {
    async fn sync(
        &self,
        request: Request<Streaming<SyncRequest>>,
    ) -> Result<Response<BoxStream<SyncResponse>>, Status> {
        let (answers, stream) = mpsc::channel(16);
        tokio::spawn(follow(self.session.clone(), request.into_inner(), answers));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

async fn follow(
    session: Arc<Session>,
    mut requests: Streaming<SyncRequest>,
    answers: mpsc::Sender<Result<SyncResponse, Status>>,
) {
    let number = session.streams.fetch_add(1, Ordering::SeqCst) + 1;
    let mut stage = Stage::Waiting;
    let mut answer = Some(held(&session));
    loop {
        if let Some(body) = answer.take()
            && answers.send(Ok(SyncResponse { body: Some(body) })).await.is_err()
        {
            return;
        }
        let Ok(Some(request)) = requests.message().await else { return };
        if !session.is_newest(number) {
            return;
        }
        let generation = generation_of(&request);
        answer = match take(&session, &mut stage, request) {
            Ok(answer) => answer,
            Err(refused) => {
                stage = Stage::Waiting;
                session.held.send_modify(|held| *held = State::default());
                let Refusal { reason, message } = refused;
                Some(Answer::Nack(Nack { generation, reason: reason.into(), message }))
            }
        };
        session.report_readiness().await;
    }
}

fn take(
    session: &Session,
    stage: &mut Stage,
    request: SyncRequest,
) -> Result<Option<Answer>, Refusal> {
    match (request.body, &mut *stage) {
        (Some(Body::Begin(begin)), _) => start(session, stage, begin),
        (Some(Body::Chunk(chunk)), Stage::Transferring { changes, .. }) => {
            changes.extend(chunk.changes);
            Ok(None)
        }
        (Some(Body::Commit(commit)), Stage::Transferring { epoch, changes }) => {
            let Commit { generation, node_count } = commit;
            let (epoch, changes) = (std::mem::take(epoch), std::mem::take(changes));
            let state = State::transferred(epoch, generation, changes, node_count)?;
            session.held.send_replace(state);
            *stage = Stage::Following;
            Ok(Some(ack(session)))
        }
        (Some(Body::Delta(delta)), Stage::Following) => {
            let mut taken = Ok(());
            session.held.send_modify(|held| taken = held.follow(delta));
            taken.map(|()| Some(ack(session)))
        }
        _ => Err(refusal(NackReason::OutOfOrder, "the message does not belong here")),
    }
}

fn start(session: &Session, stage: &mut Stage, begin: Begin) -> Result<Option<Answer>, Refusal> {
    let Some(from) = begin.resume_generation else {
        *stage = Stage::Transferring { epoch: begin.epoch, changes: Vec::new() };
        return Ok(None);
    };
    let held = session.held.borrow();
    if begin.epoch != held.epoch || !(1..=held.generation).contains(&from) {
        return Err(refusal(NackReason::CannotResume, "that is not held"));
    }
    drop(held);
    *stage = Stage::Following;
    Ok(Some(ack(session)))
}

fn held(session: &Session) -> Answer {
    let held = session.held.borrow();
    Answer::Held(Held { epoch: held.epoch.clone(), generation: held.generation })
}

fn ack(session: &Session) -> Answer {
    Answer::Ack(Ack { generation: session.held.borrow().generation })
}

fn generation_of(request: &SyncRequest) -> i64 {
    match &request.body {
        Some(Body::Commit(commit)) => commit.generation,
        Some(Body::Delta(delta)) => delta.generation,
        _ => 0,
    }
}
