//! The calls after a node was chosen: from the reservation to the attempt's end.

use prost::bytes::Bytes;

use crate::call::{Turn, gone, success};
use crate::errors::{CallError, guarded};
use crate::finding::{REJECTIONS, REJECTIONS_OR_PENDING};
use crate::outcomes::{Code, CycleOutcome, MetadataPatch, Outcome, Permission, Reply, Status};
use crate::pb;
use crate::session::Unanswered;

type Answer<R> = Result<Reply<R>, Unanswered>;

// All calls have one form, also those that can't fail.
#[allow(clippy::unnecessary_wraps)]
impl Turn<'_> {
    pub(crate) fn reserve(&mut self, request: &pb::ReserveRequest) -> Answer<pb::ReserveResponse> {
        let (functions, call) = (self.functions, self.call.clone());
        let (pod, node) = self.chosen(&request.node_name)?;
        let skip_pre_bind = functions.pre_bind.is_none();
        let Some(node) = node else {
            let status = Some(gone(&request.node_name));
            return Ok(Reply::Now(pb::ReserveResponse { status, ..Default::default() }));
        };
        let Some(function) = &functions.reserve else {
            let status = Some(success());
            return Ok(Reply::Now(pb::ReserveResponse { status, skip_pre_bind, metadata_patch: None }));
        };
        Ok(functions.verdict_of(
            "reserve",
            REJECTIONS_OR_PENDING,
            || function(&call, &pod, node),
            move |status, patch| {
                let (status, metadata_patch) = (Some(status), encoded(patch.flatten()));
                pb::ReserveResponse { status, skip_pre_bind, metadata_patch }
            },
        ))
    }

    pub(crate) fn unreserve(&mut self, request: &pb::UnreserveRequest) -> Answer<pb::UnreserveResponse> {
        if let Some(function) = &self.functions.unreserve {
            // It can't fail: what went wrong was logged.
            let _ = guarded("unreserve", || function(&self.call, &request.node_name));
        }
        Ok(Reply::Now(pb::UnreserveResponse {}))
    }

    pub(crate) fn permit(&mut self, request: &pb::PermitRequest) -> Answer<pb::PermitResponse> {
        let (functions, call) = (self.functions, self.call.clone());
        let (pod, node) = self.chosen(&request.node_name)?;
        let now = |status| Ok(Reply::Now(pb::PermitResponse { status: Some(status), timeout: None }));
        let Some(node) = node else { return now(gone(&request.node_name)) };
        let Some(function) = &functions.permit else { return now(success()) };
        Ok(functions.verdict_of("permit", REJECTIONS, || function(&call, &pod, node), permitted))
    }

    pub(crate) fn pre_bind(&mut self, request: &pb::PreBindRequest) -> Answer<pb::PreBindResponse> {
        let (functions, call) = (self.functions, self.call.clone());
        let (pod, node) = self.chosen(&request.node_name)?;
        let now = |status| Ok(Reply::Now(pb::PreBindResponse { status: Some(status), metadata_patch: None }));
        let Some(node) = node else { return now(gone(&request.node_name)) };
        let Some(function) = &functions.pre_bind else { return now(success()) };
        Ok(functions.verdict_of(
            "pre_bind",
            REJECTIONS_OR_PENDING,
            || function(&call, &pod, node),
            |status, patch| pb::PreBindResponse { status: Some(status), metadata_patch: encoded(patch.flatten()) },
        ))
    }

    pub(crate) fn bind(&mut self, request: &pb::BindRequest) -> Answer<pb::BindResponse> {
        let (functions, call) = (self.functions, self.call.clone());
        let (pod, node) = self.chosen(&request.node_name)?;
        Ok(functions.verdict_of(
            "bind",
            &[Code::Skip],
            || match (&functions.bind, node) {
                (None, _) => Reply::Now(Err(Status::skip())),
                (Some(_), None) => Reply::Now(Err(Status::error(format!("node {} is gone", request.node_name)))),
                (Some(function), Some(node)) => function(&call, &pod, node, &request.annotations),
            },
            |status, _| pb::BindResponse { status: Some(status) },
        ))
    }

    pub(crate) fn post_bind(&mut self, request: &pb::PostBindRequest) -> Answer<pb::PostBindResponse> {
        if let Some(function) = &self.functions.post_bind {
            let _ = guarded("post_bind", || function(&self.call, &request.node_name));
        }
        Ok(Reply::Now(pb::PostBindResponse {}))
    }

    /// Says what became of the attempt; a pod that will not be asked about again is forgotten.
    pub(crate) fn cycle_done(&mut self, request: &pb::CycleDoneRequest) -> Answer<pb::CycleDoneResponse> {
        let result = CycleOutcome::of(request.outcome)
            .ok_or_else(|| CallError::invalid(format!("outcome {} is none", request.outcome)))?;
        if let Some(function) = &self.functions.cycle_done {
            let node_name = request.node_name.clone();
            let outcome = Outcome { result, node_name, rejected: request.rejected_by_plugin };
            let _ = guarded("cycle_done", || function(&self.call, &outcome));
        }
        if matches!(result, CycleOutcome::Bound | CycleOutcome::Aborted) {
            self.session.pods.forget(&self.call.key.uid);
        }
        Ok(Reply::Now(pb::CycleDoneResponse {}))
    }
}

fn permitted(status: pb::Status, permission: Option<Permission>) -> pb::PermitResponse {
    match permission {
        Some(Permission::Wait(limit)) => pb::PermitResponse {
            status: Some(pb::Status { code: pb::Code::Wait.into(), reasons: Vec::new() }),
            timeout: prost_types::Duration::try_from(limit).ok(),
        },
        _ => pb::PermitResponse { status: Some(status), timeout: None },
    }
}

/// A patch as the scheduler takes it; texts by text always have a JSON form.
fn encoded(patch: Option<MetadataPatch>) -> Option<Bytes> {
    patch.and_then(|patch| serde_json::to_vec(&patch).ok()).map(Bytes::from)
}
