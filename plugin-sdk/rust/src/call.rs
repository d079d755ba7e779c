//! One question on its way through the author's functions.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use prost::Message;

use crate::errors::{CallError, guarded, guarded_later};
use crate::log::log_failure;
use crate::outcomes::{Call, Code, PodKey, Profile, Reply, Status};
use crate::pb;
use crate::pb::group_service_server::SERVICE_NAME as GROUP;
use crate::pb::placement_service_server::SERVICE_NAME as PLACEMENT;
use crate::pb::scheduling_service_server::SERVICE_NAME as SCHEDULING;
use crate::plugin::Functions;
use crate::session::{Session, Unanswered};
use crate::vectors::pack_status;

/// A request about a pod or its group.
pub(crate) trait Question: Message + Default {
    type Answer: Message + Default + 'static;
    const SERVICE: &'static str;
    const METHOD: &'static str;

    fn head(&self) -> Option<&pb::Call>;

    /// Answers, in the question's turn. A question whose generation is not held
    /// yet is put again when the state has moved.
    fn answer(&self, turn: &mut Turn<'_>) -> Result<Reply<Self::Answer>, Unanswered>;
}

/// What a question has while it is answered: the session is its own.
pub(crate) struct Turn<'a> {
    pub functions: &'a Arc<Functions>,
    pub session: &'a mut Session,
    pub head: &'a pb::Call,
    pub call: Call,
    /// How many nodes passed Filter and how many were turned down.
    pub verdicts: Option<(usize, usize)>,
}

impl<'a> Turn<'a> {
    pub fn new(
        functions: &'a Arc<Functions>,
        session: &'a mut Session,
        head: Option<&'a pb::Call>,
    ) -> Result<Self, CallError> {
        let head = head.ok_or_else(|| CallError::invalid("the request has no call"))?;
        let pod = head.pod.as_ref().ok_or_else(|| CallError::invalid("the call names no pod"))?;
        let profile = match session.profiles.get(&head.profile) {
            Some(known) => known.clone(),
            None => Profile { name: head.profile.clone(), shadow: false },
        };
        let key = PodKey::of(pod);
        Ok(Turn { functions, session, head, call: Call { profile, key }, verdicts: None })
    }

    /// The pod's object, as sent or as remembered.
    pub fn pod(&mut self) -> Result<Arc<Pod>, CallError> {
        let reference = self.head.pod.as_ref().ok_or_else(|| CallError::invalid("the call names no pod"))?;
        self.session.pod(reference)
    }

    /// Catches up with the call's generation and gives its pod.
    pub fn asked(&mut self) -> Result<Arc<Pod>, Unanswered> {
        self.session.catch_up(self.head)?;
        Ok(self.pod()?)
    }

    /// The pod, and the node that was chosen for it, if that is still there.
    pub fn chosen(&mut self, node_name: &str) -> Result<(Arc<Pod>, Option<&Node>), Unanswered> {
        let pod = self.asked()?;
        Ok((pod, self.session.mirror.node(node_name)))
    }

    /// The status of an author's failure.
    pub fn failure(&self, text: &str) -> pb::Status {
        self.functions.failure(text)
    }
}

impl Functions {
    /// The status of an author's failure, which is logged: the scheduler may go on without it.
    pub(crate) fn failure(&self, text: &str) -> pb::Status {
        log_failure("answer failed", &self.name, text);
        pb::Status { code: pb::Code::Error.into(), reasons: vec![format!("{}: {text}", self.name)] }
    }

    /// Packs what an author's function gave: the answer's status, and what came with a success.
    pub(crate) fn verdict<T>(&self, given: Result<T, Status>, allowed: &[Code]) -> (pb::Status, Option<T>) {
        match given {
            Ok(value) => (success(), Some(value)),
            Err(status) => match pack_status(status, allowed) {
                Ok(packed) => (packed, None),
                Err(problem) => (self.failure(&problem), None),
            },
        }
    }

    /// Calls an author's function and packs what it gives, at once or later.
    pub(crate) fn verdict_of<T, R>(
        self: &Arc<Self>,
        name: &'static str,
        allowed: &'static [Code],
        function: impl FnOnce() -> Reply<Result<T, Status>>,
        pack: impl FnOnce(pb::Status, Option<T>) -> R + Send + 'static,
    ) -> Reply<R>
    where
        T: Send + 'static,
    {
        let functions = self.clone();
        match guarded(name, function) {
            Err(problem) => Reply::Now(pack(self.failure(&problem), None)),
            Ok(Reply::Now(given)) => {
                let (status, value) = self.verdict(given, allowed);
                Reply::Now(pack(status, value))
            }
            Ok(Reply::Later(future)) => Reply::later(async move {
                let (status, value) = match guarded_later(name, future).await {
                    Ok(given) => functions.verdict(given, allowed),
                    Err(problem) => (functions.failure(&problem), None),
                };
                pack(status, value)
            }),
        }
    }
}

/// A pass.
pub(crate) fn success() -> pb::Status {
    pb::Status { code: pb::Code::Success.into(), reasons: Vec::new() }
}

/// The verdict on a pod whose node went away meanwhile.
pub(crate) fn gone(node_name: &str) -> pb::Status {
    let reasons = vec![format!("node {node_name} is gone")];
    pb::Status { code: pb::Code::Unschedulable.into(), reasons }
}

/// Hands a macro every unary call of `SchedulingService`: its name on the wire, its method, its request and its answer.
macro_rules! scheduling_calls {
    ($macro:ident) => {
        $macro! {
            scheduling SCHEDULING;
            PreEnqueue pre_enqueue PreEnqueueRequest PreEnqueueResponse,
            Filter filter FilterRequest FilterResponse,
            Score score ScoreRequest ScoreResponse,
            FilterScore filter_score FilterScoreRequest FilterScoreResponse,
            FilterOverlays filter_overlays FilterOverlaysRequest FilterOverlaysResponse,
            PostFilter post_filter PostFilterRequest PostFilterResponse,
            Reserve reserve ReserveRequest ReserveResponse,
            Unreserve unreserve UnreserveRequest UnreserveResponse,
            Permit permit PermitRequest PermitResponse,
            PreBind pre_bind PreBindRequest PreBindResponse,
            Bind bind BindRequest BindResponse,
            PostBind post_bind PostBindRequest PostBindResponse,
            CycleDone cycle_done CycleDoneRequest CycleDoneResponse,
        }
    };
}
pub(crate) use scheduling_calls;

/// The same of `PlacementService`.
macro_rules! placement_calls {
    ($macro:ident) => {
        $macro! {
            placement PLACEMENT;
            GeneratePlacements generate_placements GeneratePlacementsRequest GeneratePlacementsResponse,
            ScorePlacements score_placements ScorePlacementsRequest ScorePlacementsResponse,
        }
    };
}
pub(crate) use placement_calls;

/// The same of `GroupService`.
macro_rules! group_calls {
    ($macro:ident) => {
        $macro! {
            group GROUP;
            PlacementFeasible placement_feasible PlacementFeasibleRequest PlacementFeasibleResponse,
            PodGroupPostFilter pod_group_post_filter PodGroupPostFilterRequest PodGroupPostFilterResponse,
        }
    };
}
pub(crate) use group_calls;

macro_rules! questions {
    ($_:ident $service:ident; $($name:ident $method:ident $request:ident $response:ident,)*) => {
        $(impl Question for pb::$request {
            type Answer = pb::$response;
            const SERVICE: &'static str = $service;
            const METHOD: &'static str = stringify!($name);

            fn head(&self) -> Option<&pb::Call> {
                self.call.as_ref()
            }

            fn answer(&self, turn: &mut Turn<'_>) -> Result<Reply<Self::Answer>, Unanswered> {
                turn.$method(self)
            }
        })*
    };
}

scheduling_calls!(questions);
placement_calls!(questions);
group_calls!(questions);
