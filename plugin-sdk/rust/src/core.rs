//! Calls on their way to the session: one at a time, in the order in which they came.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tonic::Code;

use crate::call::{Question, Turn};
use crate::errors::{CallError, guarded};
use crate::log::{Level, log};
use crate::metrics::{Meter, code_name};
use crate::outcomes::{Profile, Reply};
use crate::pb;
use crate::plugin::Functions;
use crate::session::{Session, Unanswered};
use crate::tracing::{TraceParent, Tracing, end};

pub(crate) const PROTOCOL_VERSION: u32 = 1;

/// What the services of a plugin share.
pub(crate) struct Core {
    pub functions: Arc<Functions>,
    session: Mutex<Session>,
    /// Wakes the calls that wait for a generation.
    moved: Notify,
    pub meter: Meter,
    pub tracing: Tracing,
    /// Whether calls can be answered: configured and synced.
    pub ready: watch::Sender<bool>,
    /// Whether the plugin is being stopped.
    pub stopping: watch::Sender<bool>,
    /// The Sync stream that counts.
    pub stream: watch::Sender<u64>,
}

/// Where a call came from: its trace, over which RPC system, and until when it is waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub parent: TraceParent,
    pub system: &'static str,
    pub deadline: Option<Instant>,
}

impl Origin {
    /// A call that is waited for so long from now on.
    pub fn new(parent: TraceParent, system: &'static str, timeout: Option<Duration>) -> Self {
        Origin { parent, system, deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)) }
    }
}

impl Core {
    pub fn new(functions: Functions, tracing: Tracing) -> Self {
        let functions = Arc::new(functions);
        Core {
            session: Mutex::new(Session::new(functions.clone())),
            moved: Notify::new(),
            meter: Meter::new(&functions.name, &functions.version),
            tracing,
            ready: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
            stream: watch::Sender::new(0),
            functions,
        }
    }

    /// Runs a function with the session to itself; what it changes, calls that wait hear of.
    pub fn with<R>(&self, function: impl FnOnce(&mut Session) -> R) -> R {
        let mut session: MutexGuard<'_, Session> = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (session.mirror.generation, session.profiles.len());
        let result = function(&mut session);
        if before != (session.mirror.generation, session.profiles.len()) {
            self.meter.state(session.mirror.generation, session.mirror.counts());
            self.ready.send_if_modified(|ready| std::mem::replace(ready, session.is_ready()) != session.is_ready());
            self.moved.notify_waiters();
        }
        result
    }

    /// Answers a call about a pod or its group, within a span of its own.
    pub async fn ask<Q: Question>(&self, question: &Q, origin: &Origin) -> Result<Q::Answer, CallError> {
        let mut verdicts = None;
        let mut generation = 0;
        let started = Instant::now();
        let span = self.tracing.span(Q::METHOD, &origin.parent);
        let answered = within(origin.deadline, self.answered(question, &mut verdicts, &mut generation)).await;
        let code = answered.as_ref().err().map_or(Code::Ok, |error| error.code);
        let attributes = || {
            // By OpenTelemetry's semantic conventions 1.44 for RPC servers.
            let mut attributes = vec![
                KeyValue::new("rpc.system.name", origin.system),
                KeyValue::new("rpc.method", format!("{}/{}", Q::SERVICE, Q::METHOD)),
                KeyValue::new("rpc.response.status_code", code_name(code)),
                KeyValue::new("berth.plugin", self.functions.name.clone()),
                KeyValue::new("berth.generation", generation),
            ];
            if code != Code::Ok {
                attributes.push(KeyValue::new("error.type", code_name(code)));
            }
            if let Some((passed, rejected)) = verdicts {
                attributes.push(KeyValue::new("berth.nodes.passed", i64::try_from(passed).unwrap_or(i64::MAX)));
                attributes.push(KeyValue::new("berth.nodes.rejected", i64::try_from(rejected).unwrap_or(i64::MAX)));
            }
            attributes
        };
        end(span, attributes, answered.as_ref().err());
        self.meter.answered(Q::METHOD, code, started.elapsed(), verdicts);
        answered
    }

    async fn answered<Q: Question>(
        &self,
        question: &Q,
        verdicts: &mut Option<(usize, usize)>,
        generation: &mut i64,
    ) -> Result<Q::Answer, CallError> {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            // From here on a move is not missed, though it is waited for further down.
            moved.as_mut().enable();
            let given = self.with(|session| {
                let given = guarded(Q::METHOD, || {
                    let mut turn = Turn::new(&self.functions, session, question.head())?;
                    let given = question.answer(&mut turn);
                    *verdicts = turn.verdicts;
                    given
                });
                *generation = session.mirror.generation;
                given.unwrap_or_else(|problem| Err(CallError::new(Code::Internal, problem).into()))
            });
            match given {
                Ok(Reply::Now(answer)) => return Ok(answer),
                Ok(Reply::Later(future)) => return Ok(future.await),
                Err(Unanswered::Failed(error)) => return Err(error),
                Err(Unanswered::Behind) => moved.await,
            }
        }
    }

    /// Answers a call that is about no attempt, in its turn.
    pub fn besides<R>(
        &self,
        method: &'static str,
        parent: &TraceParent,
        function: impl FnOnce(&mut Session) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let started = Instant::now();
        let span = self.tracing.span(method, parent);
        let answered = self.with(|session| {
            guarded(method, || function(session))
                .unwrap_or_else(|problem| Err(CallError::new(Code::Internal, problem)))
        });
        end(span, Vec::new, answered.as_ref().err());
        let code = answered.as_ref().err().map_or(Code::Ok, |error| error.code);
        self.meter.answered(method, code, started.elapsed(), None);
        answered
    }

    /// Fills in a table of hints.
    pub fn hints(
        &self,
        request: &pb::QueueingHintsRequest,
        parent: &TraceParent,
    ) -> Result<pb::QueueingHintsResponse, CallError> {
        self.besides("QueueingHints", parent, |session| session.hints(&self.functions, request))
    }

    /// Says where pods stand in the queue.
    pub fn sort_keys(
        &self,
        request: &pb::SortKeysRequest,
        parent: &TraceParent,
    ) -> Result<pb::SortKeysResponse, CallError> {
        self.besides("SortKeys", parent, |session| session.sort_keys(&self.functions, request))
    }

    /// Hands a profile's arguments to the plugin; every error goes back.
    pub fn configure(
        &self,
        request: &pb::ConfigureRequest,
        parent: &TraceParent,
    ) -> Result<pb::ConfigureResponse, CallError> {
        let errors = self.besides("Configure", parent, |session| Ok(self.configured(session, request)))?;
        for error in &errors {
            log(Level::Error, "configure", &[("profile", &request.profile), ("error", error)]);
        }
        Ok(pb::ConfigureResponse { errors })
    }

    fn configured(&self, session: &mut Session, request: &pb::ConfigureRequest) -> Vec<String> {
        let arguments = &self.functions.arguments;
        if request.removed {
            if session.profiles.remove(&request.profile).is_some() {
                arguments.drop_profile(&request.profile);
                if let Some(function) = &self.functions.profile_removed {
                    // What went wrong was logged; the profile is gone all the same.
                    let _ = guarded("profile_removed", || function(&request.profile));
                }
            }
            return Vec::new();
        }
        let mut problems = request.handshake_errors.clone();
        if request.protocol_version != PROTOCOL_VERSION {
            let version = request.protocol_version;
            problems.push(format!("protocol_version: {version} is not spoken here, {PROTOCOL_VERSION} is"));
        }
        if !problems.is_empty() {
            return problems;
        }
        let profile = Profile { name: request.profile.clone(), shadow: request.shadow };
        let taken = guarded("arguments", || arguments.take(&profile, request.arguments.as_deref()));
        let problems = taken.unwrap_or_else(|problem| vec![problem]);
        if problems.is_empty() {
            session.profiles.insert(profile.name.clone(), profile);
        }
        problems
    }
}

/// Awaits an answer until the deadline.
async fn within<R>(
    deadline: Option<Instant>,
    answer: impl Future<Output = Result<R, CallError>>,
) -> Result<R, CallError> {
    let Some(deadline) = deadline else { return answer.await };
    let late = |_| CallError::new(Code::DeadlineExceeded, "there was no answer in time");
    timeout_at(deadline, answer).await.map_err(late)?
}
