//! The plugin's own way to speak to the scheduler.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::outcomes::SortKey;
use crate::pb::{self, requeue_response::Action};

/// How many sort keys the scheduler reads in a message.
const KEYS_A_MESSAGE: usize = 4096;

/// Says that something outside the cluster changed, from any thread and at any
/// time. What is said while no scheduler listens is lost: it starts by trying
/// everything anyway. Clones speak to the same schedulers.
#[derive(Clone, Default)]
pub struct Requeue {
    said: Arc<Mutex<Said>>,
}

#[derive(Default)]
struct Said {
    listeners: Vec<UnboundedSender<pb::RequeueResponse>>,
    last_number: u64,
}

impl Requeue {
    /// One that speaks to no scheduler yet.
    #[must_use]
    pub fn new() -> Self {
        Requeue::default()
    }

    /// Has these pods tried again, by UID.
    pub fn pods<T: Into<String>>(&self, cause: &str, uids: impl IntoIterator<Item = T>) {
        self.say(cause, Action::Requeue(pod_set(uids)));
    }

    /// Has all pods tried again that this plugin rejected.
    pub fn all_rejected(&self, cause: &str) {
        self.say(cause, Action::RequeueAll(pb::AllRejected {}));
    }

    /// Lets pods go on that wait at Permit.
    pub fn allow<T: Into<String>>(&self, cause: &str, uids: impl IntoIterator<Item = T>) {
        self.say(cause, Action::AllowWaiting(pod_set(uids)));
    }

    /// Stops pods that wait at Permit; their attempt fails.
    pub fn reject<T: Into<String>>(&self, cause: &str, uids: impl IntoIterator<Item = T>) {
        self.say(cause, Action::RejectWaiting(pod_set(uids)));
    }

    /// Sorts pods by these keys from now on, by UID.
    pub fn sort_keys<T: Into<String>, K: Into<SortKey>>(&self, cause: &str, keys: impl IntoIterator<Item = (T, K)>) {
        let keys: Vec<_> = keys.into_iter().map(|(uid, key)| (uid.into(), key.into().message())).collect();
        for part in keys.chunks(KEYS_A_MESSAGE) {
            let (uids, keys) = part.iter().cloned().unzip();
            self.say(cause, Action::SortKeys(pb::PodSortKeys { uids, keys }));
        }
    }

    fn say(&self, cause: &str, action: Action) {
        let mut said = self.said();
        said.last_number += 1;
        let message =
            pb::RequeueResponse { cause: cause.to_string(), number: said.last_number, action: Some(action) };
        said.listeners.retain(|listener| listener.send(message.clone()).is_ok());
    }

    /// The number of what was said last, 0 if nothing was.
    pub(crate) fn last_number(&self) -> u64 {
        self.said().last_number
    }

    /// A queue of what is said from now on.
    pub(crate) fn listen(&self) -> UnboundedReceiver<pb::RequeueResponse> {
        let (sender, receiver) = unbounded_channel();
        let mut said = self.said();
        said.listeners.retain(|listener| !listener.is_closed());
        said.listeners.push(sender);
        receiver
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pod_set<T: Into<String>>(uids: impl IntoIterator<Item = T>) -> pb::PodSet {
    pb::PodSet { uids: uids.into_iter().map(Into::into).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_keys_come_in_messages_that_the_scheduler_reads() {
        let requeue = Requeue::new();
        let mut heard = requeue.listen();

        requeue.sort_keys("a test", (0..5000).map(|number| (number.to_string(), [number])));

        let mut next = || match heard.try_recv().expect("a message").action {
            Some(Action::SortKeys(changed)) => (changed.uids.len(), changed.keys[0].parts[0]),
            other => panic!("expected sort keys, got {other:?}"),
        };
        assert_eq!([(4096, 0), (904, 4096)], [next(), next()]);
    }
}
