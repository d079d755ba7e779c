//! What is known of one node's NUMA nodes, and what was reserved there since.
//!
//! ```text
//! latest    the data as last seen
//! held      the data as last proven to account for every pod on the node, reservations taken off
//! ```
// Source: pkg/noderesourcetopology/cache/overreserve.go, discardreserved.go (scheduler-plugins, v0.35).

use std::collections::BTreeMap;

use crate::fingerprint;
use crate::requests::Amounts;
use crate::settings::{ForeignPods, ResyncMethod, ResyncScope, Settings};
use crate::topology::Topology;

/// What is known of one node.
#[derive(Default)]
pub struct NodeRecord {
    latest: Option<Topology>,
    accounted: Option<Topology>,
    /// `accounted` less what is reserved.
    held: Option<Topology>,
    reserved: BTreeMap<String, Reservation>,
    pods: BTreeMap<String, PodOnNode>,
    foreign: bool,
    foreign_exclusive: bool,
}

/// What a pod that was assumed on the node takes.
pub struct Reservation {
    pub attempt: u32,
    pub pod: PodOnNode,
    pub amounts: Amounts,
    pub bound: bool,
}

/// A pod that counts on the node.
#[derive(Clone, Debug)]
pub struct PodOnNode {
    pub namespace: String,
    pub name: String,
    /// It has CPUs, memory or devices to itself.
    pub exclusive: bool,
    /// Another scheduler placed it.
    pub foreign: bool,
}

impl NodeRecord {
    /// The data by which a profile decides; an error: they can't be believed.
    pub fn topology(&self, settings: &Settings) -> Result<Option<&Topology>, ()> {
        if settings.discard_reserved_nodes {
            let pending = self.reserved.values().any(|reservation| !reservation.bound);
            return if pending { Err(()) } else { Ok(self.latest.as_ref()) };
        }
        if settings.cache_resync_period_seconds == 0 {
            return Ok(self.latest.as_ref());
        }
        let doubtful = match settings.cache.foreign_pods_detect {
            ForeignPods::None => false,
            ForeignPods::All => self.foreign,
            ForeignPods::OnlyExclusiveResources => self.foreign_exclusive,
        };
        if doubtful { Err(()) } else { Ok(self.held.as_ref()) }
    }

    /// Whether a resource is bound to NUMA nodes there.
    pub fn has_zones(&self, resource: &str) -> bool {
        let zones = self.latest.iter().flat_map(|topology| &topology.zones);
        zones.into_iter().any(|zone| zone.available.contains_key(resource))
    }

    /// Takes new data; they count at once where there were none, and from the
    /// moment on that their fingerprint is that of the pods on the node.
    pub fn put_topology(&mut self, topology: Topology, method: ResyncMethod, scope: ResyncScope) {
        match &mut self.accounted {
            None => {
                // Which of the pods that are there already they account for, only a fingerprint says.
                self.foreign = self.pods.values().any(|pod| pod.foreign);
                self.foreign_exclusive = self.pods.values().any(|pod| pod.foreign && pod.exclusive);
                self.accounted = Some(topology.clone());
            }
            Some(accounted) if scope == ResyncScope::All => accounted.manager = topology.manager,
            Some(_) => {}
        }
        self.latest = Some(topology);
        self.resync(method);
        self.hold();
    }

    /// Forgets the data.
    pub fn remove_topology(&mut self) {
        (self.latest, self.accounted, self.held) = (None, None, None);
        self.reserved.clear();
        (self.foreign, self.foreign_exclusive) = (false, false);
    }

    /// Counts a pod on the node; true if its data account for every pod there since, and did not before.
    pub fn put_pod(&mut self, uid: &str, pod: PodOnNode, method: ResyncMethod) -> bool {
        if pod.foreign && self.latest.is_some() && !self.pods.contains_key(uid) {
            self.foreign = true;
            self.foreign_exclusive |= pod.exclusive;
        }
        self.pods.insert(uid.to_string(), pod);
        self.resync(method)
    }

    /// Counts a pod no longer; true as above. What it had reserved is free again: the
    /// data that count are from before it.
    pub fn remove_pod(&mut self, uid: &str, method: ResyncMethod) -> bool {
        if let Some(pod) = self.pods.remove(uid).filter(|pod| pod.foreign && self.latest.is_some()) {
            self.foreign = true;
            self.foreign_exclusive |= pod.exclusive;
        }
        if self.reserved.remove(uid).is_some() {
            self.hold();
        }
        self.resync(method)
    }

    /// Forgets all but what was reserved, before everything is brought anew.
    pub fn keep_reservations(&mut self) {
        *self = NodeRecord { reserved: std::mem::take(&mut self.reserved), ..Default::default() };
    }

    /// Whether there are data, whether they are in doubt, and for how many pods something is reserved.
    pub fn summary(&self) -> (bool, bool, u32) {
        let reservations = u32::try_from(self.reserved.len()).unwrap_or(u32::MAX);
        (self.latest.is_some(), self.is_doubtful(), reservations)
    }

    /// Sets aside what a pod takes; nothing where there are no data to take it off.
    pub fn reserve(&mut self, uid: &str, reservation: Reservation) {
        if self.latest.is_some() {
            self.reserved.insert(uid.to_string(), reservation);
            self.hold();
        }
    }

    /// Gives back what that attempt reserved, or an earlier one.
    pub fn unreserve(&mut self, uid: &str, attempt: u32) {
        if self.reserved.get(uid).is_some_and(|reservation| reservation.attempt <= attempt) {
            self.reserved.remove(uid);
            self.hold();
        }
    }

    /// The pod was bound: the node is no longer left out for it.
    pub fn bound(&mut self, uid: &str) {
        if let Some(reservation) = self.reserved.get_mut(uid) {
            reservation.bound = true;
        }
    }

    /// Whether anything was reserved, or pods of other schedulers came or went, since the data were proven.
    fn is_doubtful(&self) -> bool {
        self.foreign || !self.reserved.is_empty()
    }

    /// Takes the latest data for proven if they account for every pod on the node,
    /// reservations included; true if that was in doubt.
    fn resync(&mut self, method: ResyncMethod) -> bool {
        let Some(latest) = self.latest.as_ref().filter(|latest| !latest.fingerprint.is_empty()) else { return false };
        let exclusive_alone = match method {
            ResyncMethod::Autodetect => latest.exclusive_pods_alone,
            ResyncMethod::All => false,
            ResyncMethod::OnlyExclusiveResources => true,
        };
        let coming = self.reserved.iter().filter(|(uid, _)| !self.pods.contains_key(*uid));
        let pods = self.pods.values().chain(coming.map(|(_, reservation)| &reservation.pod));
        let counted = pods.filter(|pod| pod.exclusive || !exclusive_alone);
        if latest.fingerprint != fingerprint::of(counted.map(|pod| (pod.namespace.as_str(), pod.name.as_str()))) {
            return false;
        }
        let doubtful = self.is_doubtful();
        self.accounted.clone_from(&self.latest);
        self.reserved.clear();
        (self.foreign, self.foreign_exclusive) = (false, false);
        self.hold();
        doubtful
    }

    fn hold(&mut self) {
        self.held.clone_from(&self.accounted);
        if let Some(held) = &mut self.held {
            self.reserved.values().for_each(|reservation| held.take_off_all(&reservation.amounts));
        }
    }
}
