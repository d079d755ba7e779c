//! The plugin's gRPC services.

use std::future::Future;
use std::iter::once;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::mpsc::{self, Sender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_stream::wrappers::{ReceiverStream, WatchStream};
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::call::{Question, group_calls, placement_calls, scheduling_calls};
use crate::core::{Core, Origin, PROTOCOL_VERSION};
use crate::errors::CallError;
use crate::log::{Level, log};
use crate::pb::converse_request::Call;
use crate::pb::converse_response::Answer;
use crate::pb::group_service_server::GroupService;
use crate::pb::identity_service_server::IdentityService;
use crate::pb::placement_service_server::PlacementService;
use crate::pb::queueing_service_server::QueueingService;
use crate::pb::scheduling_service_server::{SERVICE_NAME, SchedulingService};
use crate::pb::state_service_server::StateService;
use crate::pb::{self};
use crate::sync::SyncStream;
use crate::tracing::TraceParent;

const WAITING_ANSWERS: usize = 1024;
/// The RPC system, as spans name it.
const GRPC: &str = "grpc";

type Answers<R> = Pin<Box<dyn Stream<Item = Result<R, Status>> + Send>>;

/// All services, over one core.
#[derive(Clone)]
pub(crate) struct Services {
    pub core: Arc<Core>,
    /// The name of the socket that serves ttrpc, where there is one.
    pub ttrpc_socket: Option<String>,
}

#[tonic::async_trait]
impl IdentityService for Services {
    async fn handshake(
        &self,
        request: Request<pb::HandshakeRequest>,
    ) -> Result<Response<pb::HandshakeResponse>, Status> {
        let host = request.into_inner();
        log(Level::Info, "handshake", &[("host", &host.host_name), ("version", &host.host_version)]);
        let functions = &self.core.functions;
        Ok(Response::new(pb::HandshakeResponse {
            name: functions.name.clone(),
            version: functions.version.clone(),
            supported_versions: vec![PROTOCOL_VERSION],
            capabilities: Some(functions.capabilities(self.ttrpc_socket.clone())),
        }))
    }

    async fn configure(
        &self,
        request: Request<pb::ConfigureRequest>,
    ) -> Result<Response<pb::ConfigureResponse>, Status> {
        let parent = trace_parent(request.metadata());
        Ok(Response::new(self.core.configure(request.get_ref(), &parent)?))
    }
}

#[tonic::async_trait]
impl StateService for Services {
    type SyncStream = Answers<pb::SyncResponse>;

    async fn sync(&self, request: Request<Streaming<pb::SyncRequest>>) -> Result<Response<Self::SyncStream>, Status> {
        let (stream, held) = SyncStream::open(&self.core);
        let (answers, heard) = mpsc::channel(WAITING_ANSWERS);
        // The channel is new and has room.
        let _ = answers.try_send(Ok(held));
        tokio::spawn(follow(self.core.clone(), stream, request.into_inner(), answers));
        Ok(Response::new(Box::pin(ReceiverStream::new(heard))))
    }
}

/// Follows the state until the host hangs up, a newer stream takes over, or the plugin stops.
async fn follow(
    core: Arc<Core>,
    mut stream: SyncStream,
    mut requests: Streaming<pb::SyncRequest>,
    answers: Sender<Result<pb::SyncResponse, Status>>,
) {
    let (mut newest, mut stopping) = (core.stream.subscribe(), core.stopping.subscribe());
    while stream.counts() {
        let request = tokio::select! {
            request = requests.message() => request,
            _ = newest.changed() => continue,
            () = stopped(&mut stopping) => {
                let _ = answers.send(Err(Status::unavailable("the plugin is stopping"))).await;
                return;
            }
        };
        let Ok(Some(request)) = request else { return };
        if let Some(answer) = stream.answer(request)
            && answers.send(Ok(answer)).await.is_err()
        {
            return;
        }
    }
    let _ = answers.send(Err(Status::aborted("a newer Sync stream was opened"))).await;
}

#[tonic::async_trait]
impl QueueingService for Services {
    async fn queueing_hints(
        &self,
        request: Request<pb::QueueingHintsRequest>,
    ) -> Result<Response<pb::QueueingHintsResponse>, Status> {
        let parent = trace_parent(request.metadata());
        Ok(Response::new(self.core.hints(request.get_ref(), &parent)?))
    }

    async fn sort_keys(
        &self,
        request: Request<pb::SortKeysRequest>,
    ) -> Result<Response<pb::SortKeysResponse>, Status> {
        let parent = trace_parent(request.metadata());
        Ok(Response::new(self.core.sort_keys(request.get_ref(), &parent)?))
    }

    type RequeueStream = Answers<pb::RequeueResponse>;

    async fn requeue(&self, _: Request<pb::RequeueRequest>) -> Result<Response<Self::RequeueStream>, Status> {
        // Nothing that is said from here on is lost; the response's headers say so.
        let heard = self.core.functions.requeue.as_ref().map(crate::requeue::Requeue::listen);
        let (answers, said) = mpsc::channel(WAITING_ANSWERS);
        let mut stopping = self.core.stopping.subscribe();
        tokio::spawn(async move {
            let Some(mut heard) = heard else {
                tokio::select! { () = answers.closed() => {}, () = stopped(&mut stopping) => {} }
                return;
            };
            loop {
                tokio::select! {
                    Some(message) = heard.recv() => if answers.send(Ok(message)).await.is_err() { return },
                    () = answers.closed() => return,
                    () = stopped(&mut stopping) => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(said))))
    }
}

macro_rules! scheduling_service {
    ($_:ident $_service:ident; $($name:ident $method:ident $request:ident $response:ident,)*) => {
        #[tonic::async_trait]
        impl SchedulingService for Services {
            $(async fn $method(&self, request: Request<pb::$request>) -> Result<Response<pb::$response>, Status> {
                self.unary(request).await
            })*

            type ConverseStream = Answers<pb::ConverseResponse>;

            async fn converse(
                &self,
                request: Request<Streaming<pb::ConverseRequest>>,
            ) -> Result<Response<Self::ConverseStream>, Status> {
                let (answers, heard) = mpsc::channel(WAITING_ANSWERS);
                tokio::spawn(converse(self.core.clone(), request.into_inner(), answers));
                Ok(Response::new(Box::pin(ReceiverStream::new(heard))))
            }
        }

        /// Answers one message of a conversation.
        async fn answer_of(core: &Core, call: Option<Call>, origin: &Origin) -> Result<Answer, CallError> {
            match call {
                $(Some(Call::$name(question)) => core.ask(&question, origin).await.map(Answer::$name),)*
                None => Err(CallError::new(Code::Unimplemented, "no such call")),
            }
        }
    };
}

scheduling_calls!(scheduling_service);

macro_rules! placement_service {
    ($_:ident $_service:ident; $($name:ident $method:ident $request:ident $response:ident,)*) => {
        #[tonic::async_trait]
        impl PlacementService for Services {
            $(async fn $method(&self, request: Request<pb::$request>) -> Result<Response<pb::$response>, Status> {
                self.unary(request).await
            })*
        }
    };
}

placement_calls!(placement_service);

macro_rules! group_service {
    ($_:ident $_service:ident; $($name:ident $method:ident $request:ident $response:ident,)*) => {
        #[tonic::async_trait]
        impl GroupService for Services {
            $(async fn $method(&self, request: Request<pb::$request>) -> Result<Response<pb::$response>, Status> {
                self.unary(request).await
            })*
        }
    };
}

group_calls!(group_service);

impl Services {
    async fn unary<Q: Question>(&self, request: Request<Q>) -> Result<Response<Q::Answer>, Status> {
        // The server itself ends a call whose `grpc-timeout` is over.
        let origin = Origin::new(trace_parent(request.metadata()), GRPC, None);
        Ok(Response::new(self.core.ask(request.get_ref(), &origin).await?))
    }
}

/// Answers calls side by side, each as soon as it has its answer; the author's
/// functions see them in the order of the stream.
async fn converse(
    core: Arc<Core>,
    mut requests: Streaming<pb::ConverseRequest>,
    answers: Sender<Result<pb::ConverseResponse, Status>>,
) {
    let mut stopping = core.stopping.subscribe();
    let mut later = JoinSet::new();
    loop {
        let request = tokio::select! {
            request = requests.message() => request,
            Some(_) = later.join_next() => continue,
            () = stopped(&mut stopping) => break,
        };
        let Ok(Some(mut request)) = request else { return };
        let also = std::mem::take(&mut request.also);
        let mut ready = Vec::new();
        for each in once(request).chain(also) {
            match at_once(conversed(core.clone(), each)) {
                Ok(answer) => ready.push(answer),
                Err(future) => {
                    let answers = answers.clone();
                    later.spawn(async move { answers.send(Ok(future.await)).await });
                }
            }
        }
        if let Some(together) = together(ready)
            && answers.send(Ok(together)).await.is_err()
        {
            return;
        }
    }
    while later.join_next().await.is_some() {}
    let _ = answers.send(Err(Status::unavailable("the plugin is stopping"))).await;
}

async fn conversed(core: Arc<Core>, request: pb::ConverseRequest) -> pb::ConverseResponse {
    let parent = TraceParent { traceparent: request.traceparent, tracestate: None };
    let timeout = request.timeout.and_then(|timeout| Duration::try_from(timeout).ok());
    let answer = answer_of(&core, request.call, &Origin::new(parent, GRPC, timeout)).await.unwrap_or_else(|error| {
        let message = error.short_text();
        Answer::Error(pb::CallError { code: error.code as i32, reason: error.reason.into(), message })
    });
    pb::ConverseResponse { id: request.id, also: Vec::new(), answer: Some(answer) }
}

/// Answers that are ready at the same time, as one message.
fn together(ready: Vec<pb::ConverseResponse>) -> Option<pb::ConverseResponse> {
    let mut ready = ready.into_iter();
    let mut first = ready.next()?;
    first.also = ready.collect();
    Some(first)
}

/// What a future gives without waiting; most answers need no task of their own.
pub(crate) fn at_once<R>(
    future: impl Future<Output = R> + Send + 'static,
) -> Result<R, Pin<Box<dyn Future<Output = R> + Send>>> {
    let mut future: Pin<Box<dyn Future<Output = R> + Send>> = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Ok(answer),
        // Its awaiter polls it again, with a waker of its own.
        Poll::Pending => Err(future),
    }
}

/// Returns when the plugin is being stopped.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the plugin.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

fn trace_parent(metadata: &MetadataMap) -> TraceParent {
    let text = |key| metadata.get(key).and_then(|value| value.to_str().ok()).map(ToString::to_string);
    TraceParent { traceparent: text("traceparent"), tracestate: text("tracestate") }
}

/// grpc.health.v1: liveness under the empty name, readiness under the scheduling
/// service's. It is read off the core, so an answer is never older than the state.
pub(crate) struct HealthService {
    core: Arc<Core>,
}

impl HealthService {
    pub fn server(core: &Arc<Core>) -> HealthServer<Self> {
        HealthServer::new(HealthService { core: core.clone() })
    }

    /// What is watched under a name, and the value that means: serving.
    fn watched(&self, service: &str) -> Result<(watch::Receiver<bool>, bool), Status> {
        match service {
            "" => Ok((self.core.stopping.subscribe(), false)),
            SERVICE_NAME => Ok((self.core.ready.subscribe(), true)),
            _ => Err(Status::not_found("there is no such service")),
        }
    }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let (watched, serving) = self.watched(&request.get_ref().service)?;
        let serves = *watched.borrow() == serving;
        Ok(Response::new(health(serves)))
    }

    type WatchStream = Answers<HealthCheckResponse>;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (watched, serving) = self.watched(&request.get_ref().service)?;
        let answers = WatchStream::new(watched).map(move |value| Ok(health(value == serving)));
        Ok(Response::new(Box::pin(answers)))
    }
}

fn health(serves: bool) -> HealthCheckResponse {
    let status = if serves { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}
