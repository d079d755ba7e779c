//! What all services of the process share: profiles, the state that is held, readiness.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::held::Held;
use crate::pb::{Call, NackReason};

const READINESS: &str = "berth.plugin.v1.SchedulingService";

pub struct Session {
    /// The label that each profile's arguments name.
    profiles: Mutex<HashMap<String, String>>,
    pub held: watch::Sender<Held>,
    /// Numbers the Sync streams; the one opened last counts.
    pub streams: AtomicU64,
    health: HealthReporter,
}

impl Session {
    pub fn new(health: HealthReporter) -> Session {
        let (held, _) = watch::channel(Held::default());
        Session { profiles: Mutex::default(), held, streams: AtomicU64::new(0), health }
    }

    pub fn profiles(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.profiles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_newest(&self, stream: u64) -> bool {
        self.streams.load(Ordering::SeqCst) == stream
    }

    /// Reports whether calls can be answered: a profile is configured, and a state is held.
    pub async fn report_readiness(&self) {
        let ready = !self.profiles().is_empty() && self.held.borrow().generation > 0;
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.health.set_service_status(READINESS, status).await;
    }

    /// Returns the label that the profile's arguments name.
    pub fn label(&self, profile: &str) -> Result<String, Status> {
        let known = self.profiles().get(profile).cloned();
        known.ok_or_else(|| precondition("NOT_CONFIGURED", "the profile was not configured"))
    }

    /// Waits for the call's generation. gRPC drops this future at the call's deadline.
    pub async fn state_for<'a>(
        &self,
        call: &mut Call,
        held: &'a mut watch::Receiver<Held>,
    ) -> Result<watch::Ref<'a, Held>, Status> {
        self.take_over(call).await?;
        let state = held
            .wait_for(|held| held.epoch != call.epoch || held.generation >= call.generation)
            .await
            .map_err(|error| Status::internal(error.to_string()))?;
        if state.generation == 0 || state.epoch != call.epoch {
            return Err(precondition("NOT_SYNCED", "another epoch is held, or none"));
        }
        if call.generation < state.indices_since {
            return Err(precondition("GENERATION_GONE", "nodes have other indices now"));
        }
        Ok(state)
    }

    /// Takes the steps that the call brings. After a gap the stream will bring what is missing.
    async fn take_over(&self, call: &mut Call) -> Result<(), Status> {
        if call.deltas.is_empty() || self.held.borrow().epoch != call.epoch {
            return Ok(());
        }
        let mut taken = Ok(());
        self.held.send_modify(|held| {
            taken = call.deltas.drain(..).try_for_each(|delta| held.follow(delta));
            if taken.as_ref().is_err_and(|refused| refused.reason != NackReason::Gap) {
                *held = Held::default();
            }
        });
        self.report_readiness().await;
        match taken {
            Err(refused) if refused.reason != NackReason::Gap => {
                Err(precondition("NOT_SYNCED", &refused.message))
            }
            _ => Ok(()),
        }
    }
}

/// Builds the status that says what the host has to do before it repeats the call.
pub fn precondition(reason: &'static str, message: &str) -> Status {
    let mut status = Status::new(Code::FailedPrecondition, message);
    status.metadata_mut().insert("berth-reason", MetadataValue::from_static(reason));
    status
}
