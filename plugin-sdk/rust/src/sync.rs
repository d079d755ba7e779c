//! One Sync stream's place in the protocol. The stream opened last counts; older ones end.
//!
//! ```text
//! Waiting --Begin, full--> Transferring --Commit--> Following
//!    |  ^                                              |  ^
//!    |  +---------------------- Nack ------------------+  |
//!    +------------------- Begin, resume ------------------+
//! ```

use std::sync::Arc;

use crate::clock::Clock;
use crate::core::Core;
use crate::log::{Level, log};
use crate::objects::SyncError;
use crate::pb::{self, NackReason, sync_request, sync_response};
use crate::requeue::Requeue;
use crate::session::Session;
use crate::steps::{Step, decode_pod, steps_of};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Waiting,
    Transferring,
    Following,
}

/// A stream that was opened.
pub(crate) struct SyncStream {
    core: Arc<Core>,
    number: u64,
    stage: Stage,
    epoch: String,
    steps: Vec<Step>,
    /// Whether the host has said the time on this stream.
    timed: bool,
}

impl SyncStream {
    /// Opens a stream, which counts from now on, and says what is held.
    pub fn open(core: &Arc<Core>) -> (Self, pb::SyncResponse) {
        let (number, held) = core.with(|session| {
            session.stream += 1;
            let held = pb::Held { epoch: session.mirror.epoch.clone(), generation: session.mirror.generation };
            core.stream.send_replace(session.stream);
            (session.stream, held)
        });
        let opened = SyncStream {
            core: core.clone(),
            number,
            stage: Stage::Waiting,
            epoch: String::new(),
            steps: Vec::new(),
            timed: false,
        };
        (opened, response(sync_response::Body::Held(held)))
    }

    /// Whether no newer stream was opened.
    pub fn counts(&self) -> bool {
        *self.core.stream.borrow() == self.number
    }

    /// Takes one message: Ack, Nack, or nothing to say.
    pub fn answer(&mut self, request: pb::SyncRequest) -> Option<pb::SyncResponse> {
        let generation = match &request.body {
            Some(sync_request::Body::Commit(commit)) => commit.generation,
            Some(sync_request::Body::Delta(delta)) => delta.generation,
            _ => 0,
        };
        let core = self.core.clone();
        if let (Some(sync_request::Body::Time(time)), Some(clock)) = (&request.body, &core.functions.clock) {
            return core.with(|session| self.reach(session, clock, time.unix_micros));
        }
        // A chunk touches nothing that is shared: it is decoded while calls go on.
        let taken = match (request.body, self.stage) {
            (Some(sync_request::Body::Chunk(chunk)), Stage::Transferring) => steps_of(chunk.changes, &decode_pod)
                .map(|steps| {
                    self.steps.extend(steps);
                    None
                }),
            (body, _) => core.with(|session| self.take(session, body)),
        };
        match taken {
            Ok(acknowledged) => {
                acknowledged.map(|generation| response(sync_response::Body::Ack(pb::Ack { generation })))
            }
            Err(error) => Some(self.refuse(generation, error)),
        }
    }

    fn reach(&mut self, session: &Session, clock: &Clock, unix_micros: i64) -> Option<pb::SyncResponse> {
        if session.stream != self.number {
            return None;
        }
        self.timed = true;
        let wake_at_unix_micros = clock.reach(unix_micros);
        let last_requeue = self.core.functions.requeue.as_ref().map_or(0, Requeue::last_number);
        let reached = pb::TimeReached { unix_micros, wake_at_unix_micros, last_requeue };
        Some(response(sync_response::Body::TimeReached(reached)))
    }

    fn take(&mut self, session: &mut Session, body: Option<sync_request::Body>) -> Result<Option<i64>, SyncError> {
        if session.stream != self.number {
            return Ok(None);
        }
        match (body, self.stage) {
            (Some(sync_request::Body::Begin(begin)), _) => return self.begin(session, begin),
            (Some(sync_request::Body::Commit(commit)), Stage::Transferring) => {
                if commit.generation < 1 {
                    return Err(out_of_order("generations start at 1".into()));
                }
                session.mirror.replace(&self.epoch, commit, std::mem::take(&mut self.steps))?;
                self.stage = Stage::Following;
            }
            (Some(sync_request::Body::Delta(delta)), Stage::Following) => session.follow(delta)?,
            (_, stage) => return Err(out_of_order(format!("the message does not belong into the stage {stage:?}"))),
        }
        Ok(Some(session.mirror.generation))
    }

    fn begin(&mut self, session: &Session, begin: pb::Begin) -> Result<Option<i64>, SyncError> {
        if begin.epoch.is_empty() {
            return Err(out_of_order("an epoch needs a name".into()));
        }
        if let (Some(clock), false) = (&self.core.functions.clock, self.timed) {
            clock.own();
        }
        self.steps.clear();
        self.epoch = begin.epoch;
        let Some(from) = begin.resume_generation else {
            self.stage = Stage::Transferring;
            return Ok(None);
        };
        let held = &session.mirror;
        if self.epoch != held.epoch || from <= 0 || from > held.generation {
            let text = format!("{} of epoch {:?} is held", held.generation, held.epoch);
            return Err(SyncError::new(NackReason::CannotResume, text));
        }
        self.stage = Stage::Following;
        Ok(Some(held.generation))
    }

    /// Holds nothing from now on, and says why.
    fn refuse(&mut self, generation: i64, error: SyncError) -> pb::SyncResponse {
        log(Level::Warn, "state refused", &[("reason", &error.reason.as_str_name()), ("error", &error.text)]);
        self.core.meter.refused(error.reason);
        self.core.with(|session| {
            if session.stream == self.number {
                session.mirror.drop_all();
            }
        });
        self.stage = Stage::Waiting;
        self.steps.clear();
        let reason = error.reason.into();
        response(sync_response::Body::Nack(pb::Nack { generation, reason, message: error.text }))
    }
}

fn out_of_order(text: String) -> SyncError {
    SyncError::new(NackReason::OutOfOrder, text)
}

fn response(body: sync_response::Body) -> pb::SyncResponse {
    pb::SyncResponse { body: Some(body) }
}
