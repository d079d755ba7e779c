//! Asking about the queue's order and about pod groups.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::cluster::number;
use super::host::{Host, PROFILE, status_of, unpack_scores};
use crate::bits::{pack_bits, unpack_bits};
use crate::outcomes::{Code, Status};
use crate::pb::group_service_client::GroupServiceClient;
use crate::pb::placement_service_client::PlacementServiceClient;
use crate::pb::queueing_service_client::QueueingServiceClient;
use crate::pb::{self};
use crate::pod_groups::PlacementProgress;

// That every method panics where the protocol is broken stands at `Host`.
#[allow(clippy::missing_panics_doc)]
impl Host {
    /// Where these pods stand in the queue.
    pub fn sort_keys<P: Into<Pod>>(&mut self, pods: impl IntoIterator<Item = P>) -> Vec<Vec<i64>> {
        let pods = pods.into_iter().filter_map(|pod| self.call(pod).pod).collect();
        let request = pb::SortKeysRequest { profile: PROFILE.into(), pods, ..Default::default() };
        self.sorted(request).keys.into_iter().map(|key| key.parts).collect()
    }

    /// Says that pods wait no more, by UID.
    pub fn pods_left(&mut self, uids: &[&str]) {
        let left_uids = uids.iter().map(ToString::to_string).collect();
        self.sorted(pb::SortKeysRequest { profile: PROFILE.into(), left_uids, ..Default::default() });
    }

    /// Says that all pods will be asked about anew.
    pub fn queue_reset(&mut self) {
        self.sorted(pb::SortKeysRequest { profile: PROFILE.into(), anew: true, ..Default::default() });
    }

    fn sorted(&self, request: pb::SortKeysRequest) -> pb::SortKeysResponse {
        let count = request.pods.len();
        let mut queueing = QueueingServiceClient::new(self.channel.clone());
        let response = self.wait(async move { queueing.sort_keys(request).await });
        assert_eq!(count, response.keys.len(), "one key a pod");
        response
    }

    /// The placements of the group of these pods, each with the names of its nodes.
    ///
    /// # Errors
    /// Why the group can go nowhere, or that the plugin has no opinion.
    pub fn generate_placements<P: Into<Pod>>(
        &mut self,
        group: &str,
        pods: impl IntoIterator<Item = P>,
    ) -> Result<Vec<(String, Vec<String>)>, Status> {
        self.generated(group, pods, None)
    }

    /// The same, made of the nodes of these names.
    ///
    /// # Errors
    /// Why the group can go nowhere, or that the plugin has no opinion.
    pub fn generate_placements_of<P: Into<Pod>>(
        &mut self,
        group: &str,
        pods: impl IntoIterator<Item = P>,
        node_names: &[&str],
    ) -> Result<Vec<(String, Vec<String>)>, Status> {
        self.generated(group, pods, Some(node_names))
    }

    fn generated<P: Into<Pod>>(
        &mut self,
        group: &str,
        pods: impl IntoIterator<Item = P>,
        names: Option<&[&str]>,
    ) -> Result<Vec<(String, Vec<String>)>, Status> {
        self.update();
        let (call, group) = self.about(group, pods);
        let candidates = self.candidates(names);
        let request = pb::GeneratePlacementsRequest { call: Some(call), group: Some(group), candidates };
        let mut plugin = PlacementServiceClient::new(self.channel.clone());
        let response = self.wait(async move { plugin.generate_placements(request).await });
        let status = status_of(response.status);
        if status.code != Code::Success {
            return Err(status);
        }
        let names = &self.cluster.names;
        let placed = |each: pb::Placement| {
            let chosen = unpack_bits(&each.bitmap, names.len()).expect("a bit for each node");
            (
                each.name,
                names.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(name, _)| name.clone()).collect(),
            )
        };
        Ok(response.placements.into_iter().map(placed).collect())
    }

    /// The raw score of each proposal, which is node names by pod names. A proposal's
    /// placement are the nodes that it uses.
    ///
    /// # Errors
    /// What went wrong, or that the plugin has no opinion.
    pub fn score_placements<P: Into<Pod>>(
        &mut self,
        group: &str,
        pods: impl IntoIterator<Item = P>,
        proposed: &[BTreeMap<&str, &str>],
    ) -> Result<Vec<i64>, Status> {
        self.update();
        let (call, group) = self.about(group, pods);
        let proposed: Vec<_> = proposed.iter().map(|nodes| self.proposal(&group, nodes)).collect();
        let count = proposed.len();
        let request = pb::ScorePlacementsRequest { call: Some(call), group: Some(group), proposed };
        let mut plugin = PlacementServiceClient::new(self.channel.clone());
        let response = self.wait(async move { plugin.score_placements(request).await });
        let status = status_of(response.status);
        if status.code != Code::Success {
            return Err(status);
        }
        Ok(unpack_scores(response.scores.and_then(|scores| scores.values), count))
    }

    /// What the plugin says of the group of these pods at each number of pods.
    pub fn placement_feasible<P: Into<Pod>>(
        &mut self,
        group: &str,
        pods: impl IntoIterator<Item = P>,
        progress: &[PlacementProgress],
    ) -> Vec<Status> {
        let (call, group) = self.about(group, pods);
        let progress = progress.iter().map(|each| pb::PlacementProgress {
            remaining: number(each.remaining),
            scheduled: number(each.scheduled),
        });
        let request =
            pb::PlacementFeasibleRequest { call: Some(call), group: Some(group), progress: progress.collect() };
        let mut plugin = GroupServiceClient::new(self.channel.clone());
        let response = self.wait(async move { plugin.placement_feasible(request).await });
        response.verdicts.into_iter().map(|verdict| status_of(Some(verdict))).collect()
    }

    /// The UIDs of the victims of each proposal for the group of these pods.
    ///
    /// # Errors
    /// Why the plugin has none.
    pub fn pod_group_post_filter<P: Into<Pod>>(
        &mut self,
        group: &str,
        pods: impl IntoIterator<Item = P>,
    ) -> Result<Vec<Vec<String>>, Status> {
        self.update();
        let (call, group) = self.about(group, pods);
        let request = pb::PodGroupPostFilterRequest { call: Some(call), group: Some(group), verdicts: None };
        let mut plugin = GroupServiceClient::new(self.channel.clone());
        let response = self.wait(async move { plugin.pod_group_post_filter(request).await });
        let status = status_of(response.status);
        if status.code != Code::Success {
            return Err(status);
        }
        Ok(response.proposals.into_iter().map(|each| each.victim_uids).collect())
    }

    /// The head of a call about a group's first pod, and the group.
    fn about<P: Into<Pod>>(&self, name: &str, pods: impl IntoIterator<Item = P>) -> (pb::Call, pb::PodGroup) {
        let calls: Vec<_> = pods.into_iter().map(|pod| self.call(pod)).collect();
        let call = calls.first().expect("a group has pods").clone();
        let pods: Vec<_> =
            calls.into_iter().filter_map(|call| Some(pb::PodRef { object: None, ..call.pod? })).collect();
        let namespace = pods[0].namespace.clone();
        (call, pb::PodGroup { namespace, name: name.into(), pods })
    }

    fn proposal(&self, group: &pb::PodGroup, nodes: &BTreeMap<&str, &str>) -> pb::ProposedPlacement {
        let used: Vec<bool> = self.cluster.names.iter().map(|name| nodes.values().any(|node| node == name)).collect();
        let pod = |name: &&str| group.pods.iter().position(|pod| pod.name == **name).expect("a pod of the group");
        pb::ProposedPlacement {
            placement: Some(pb::Placement { name: "proposal".into(), bitmap: pack_bits(&used) }),
            pod_indices: nodes.keys().map(|name| number(pod(name))).collect(),
            node_indices: nodes.values().map(|node| number(self.cluster.index(node))).collect(),
        }
    }
}
