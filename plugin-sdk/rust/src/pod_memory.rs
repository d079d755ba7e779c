//! The pods last asked about.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use prost::bytes::Bytes;

use crate::pb;

const LIMIT: usize = 10_000;

/// Keeps the pods last asked about, so that an object that comes again is not
/// decoded again, and one that is left out is at hand.
#[derive(Default)]
pub(crate) struct PodMemory {
    by_uid: HashMap<String, Remembered>,
    /// UIDs by when they were last put, the oldest first.
    by_age: BTreeMap<u64, String>,
    puts: u64,
}

struct Remembered {
    attempt: u32,
    data: Bytes,
    pod: Arc<Pod>,
    put: u64,
}

impl PodMemory {
    /// Remembers what was sent for an attempt.
    pub fn put(&mut self, reference: &pb::PodRef, data: &Bytes) -> Result<Arc<Pod>, serde_json::Error> {
        let pod = self.decode(&reference.uid, data)?;
        self.forget(&reference.uid);
        self.puts += 1;
        self.by_age.insert(self.puts, reference.uid.clone());
        // A copy: a slice would keep all of the message that brought it.
        let data = Bytes::copy_from_slice(data);
        let kept = Remembered { attempt: reference.attempt, data, pod: pod.clone(), put: self.puts };
        self.by_uid.insert(reference.uid.clone(), kept);
        if self.by_uid.len() > LIMIT
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_uid.remove(&oldest);
        }
        Ok(pod)
    }

    /// The pod of an attempt.
    pub fn get(&self, uid: &str, attempt: u32) -> Option<Arc<Pod>> {
        self.by_uid.get(uid).filter(|kept| kept.attempt == attempt).map(|kept| kept.pod.clone())
    }

    /// The pod as last seen, of any attempt.
    pub fn latest(&self, uid: &str) -> Option<Arc<Pod>> {
        self.by_uid.get(uid).map(|kept| kept.pod.clone())
    }

    pub fn forget(&mut self, uid: &str) {
        if let Some(kept) = self.by_uid.remove(uid) {
            self.by_age.remove(&kept.put);
        }
    }

    /// The pod, without work where the same bytes are remembered.
    pub fn decode(&self, uid: &str, data: &Bytes) -> Result<Arc<Pod>, serde_json::Error> {
        match self.by_uid.get(uid) {
            Some(kept) if kept.data == *data => Ok(kept.pod.clone()),
            _ => serde_json::from_slice(data).map(Arc::new),
        }
    }
}
