//! A plugin's announcement, read off its functions.

use std::time::Duration;

use crate::pb::{self, ExtensionPoint as Point};
use crate::plugin::Functions;

impl Functions {
    /// What the plugin has functions for.
    fn points(&self) -> Vec<i32> {
        let filters = self.filter_nodes.is_some();
        let offers = [
            (self.pre_enqueue.is_some(), Point::PreEnqueue),
            (self.pre_filter.is_some() || filters, Point::Filter),
            // A function that sees one node at a time sees no pods.
            (self.filters_at_once && self.wants_pods && !self.without_overlays, Point::FilterOverlays),
            (self.post_filter.is_some(), Point::PostFilter),
            (self.score_nodes.is_some(), Point::Score),
            (self.reserve.is_some(), Point::Reserve),
            (self.permit.is_some(), Point::Permit),
            (self.pre_bind.is_some(), Point::PreBind),
            (self.bind.is_some(), Point::Bind),
            (self.post_bind.is_some(), Point::PostBind),
            (self.cycle_done.is_some(), Point::CycleDone),
            (self.sort_key.is_some(), Point::QueueSort),
            (self.generate_placements.is_some(), Point::PlacementGenerate),
            (self.score_placements.is_some(), Point::PlacementScore),
            (self.placement_feasible.is_some(), Point::PlacementFeasible),
            (self.pod_group_post_filter.is_some(), Point::PodGroupPostFilter),
            (self.queueing_hints.is_some(), Point::QueueingHints),
            (self.requeue.is_some(), Point::Requeue),
        ];
        offers.iter().filter(|(served, _)| *served).map(|(_, point)| *point as i32).collect()
    }

    /// The announcement; with the name of a second socket, where there is one.
    pub(crate) fn capabilities(&self, ttrpc_socket: Option<String>) -> pb::Capabilities {
        let hints = self.queueing_hints.is_some();
        pb::Capabilities {
            extension_points: self.points(),
            events: self.events.iter().map(|event| event.message(hints)).collect(),
            pod_fields: self.pod_fields.clone().map(|paths| pb::PodFields { paths }),
            state: Some(self.interest()),
            node_local: self.node_local,
            score_needs_feasible: self.score_needs_feasible,
            arguments_schema: self.arguments.schema().map(Into::into),
            wanted_deadline: self.wanted_deadline.and_then(duration),
            converse: true,
            wanted_deadlines: self
                .wanted_deadlines
                .iter()
                .map(|(point, wanted)| pb::WantedDeadline {
                    extension_point: *point as i32,
                    deadline: duration(*wanted),
                })
                .collect(),
            converse_together: true,
            ttrpc_socket,
            listed_candidates: true,
            clock: self.clock.is_some(),
        }
    }

    fn interest(&self) -> pb::StateInterest {
        let watched = |kind: &crate::plugin::WatchedResource| pb::WatchedResource {
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.resource.clone(),
            label_selector: kind.label_selector.clone(),
        };
        pb::StateInterest {
            nodes: true,
            pods: self.wants_pods,
            nominations: self.wants_nominations,
            pod_resources: self.pod_resources.clone(),
            resources: self.resources.iter().map(watched).collect(),
            pods_without_status: self.pods_without_status,
        }
    }
}

fn duration(time: Duration) -> Option<prost_types::Duration> {
    prost_types::Duration::try_from(time).ok()
}
