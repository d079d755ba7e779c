//! Which rejected pods an event makes worth another attempt.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::bits::pack_bits;
use crate::errors::{CallError, guarded};
use crate::events::Event;
use crate::pb::{self, hint::Queue};
use crate::plugin::Functions;
use crate::session::Session;

impl Session {
    /// Fills in the table; pods that aren't remembered are queued and named. A
    /// failure of the author's is the call's, which the host takes for: queue them.
    pub fn hints(
        &mut self,
        functions: &Functions,
        request: &pb::QueueingHintsRequest,
    ) -> Result<pb::QueueingHintsResponse, CallError> {
        let found: Vec<Option<Arc<Pod>>> = request.pods.iter().map(|pod| self.waiting(pod)).collect();
        let unknown: Vec<bool> = found.iter().map(Option::is_none).collect();
        let columns: Vec<usize> = (0..found.len()).filter(|column| !unknown[*column]).collect();
        let pods: Vec<Arc<Pod>> = found.into_iter().flatten().collect();
        let events: Vec<Event> = request.events.iter().map(Event::of).collect();
        let table = hint_table(functions, &pods, &events)?;
        let hint = |row: Vec<bool>| {
            let mut whole = unknown.clone();
            columns.iter().zip(row).for_each(|(column, queued)| whole[*column] = queued);
            pack_hint(&whole)
        };
        Ok(pb::QueueingHintsResponse {
            unknown_pods: unknown.contains(&true).then(|| pack_bits(&unknown)),
            hints: table.into_iter().map(hint).collect(),
            matrix: None,
        })
    }

    /// A pod that waits, as sent or as last seen.
    pub(crate) fn waiting(&mut self, reference: &pb::PodRef) -> Option<Arc<Pod>> {
        match &reference.object {
            Some(data) => self.pods.put(reference, data).ok(),
            None => self.pods.latest(&reference.uid),
        }
    }
}

/// A row an event, a column a pod.
fn hint_table(functions: &Functions, pods: &[Arc<Pod>], events: &[Event]) -> Result<Vec<Vec<bool>>, CallError> {
    let internal = |text| CallError::new(tonic::Code::Internal, text);
    let Some(function) = &functions.queueing_hints else {
        return Ok(vec![vec![true; pods.len()]; events.len()]);
    };
    let table = guarded("queueing_hints", || function(pods, events)).map_err(internal)?;
    if table.len() != events.len() {
        return Err(internal(format!("queueing_hints: expected {} rows, got {}", events.len(), table.len())));
    }
    match table.iter().find(|row| row.len() != pods.len()) {
        Some(row) => Err(internal(format!("queueing_hints: {} columns for {} pods", row.len(), pods.len()))),
        None => Ok(table),
    }
}

fn pack_hint(row: &[bool]) -> pb::Hint {
    let queue = match row.first() {
        None => Queue::All(false),
        Some(first) if row.iter().all(|each| each == first) => Queue::All(*first),
        Some(_) => Queue::Pods(pack_bits(row)),
    };
    pb::Hint { queue: Some(queue) }
}
