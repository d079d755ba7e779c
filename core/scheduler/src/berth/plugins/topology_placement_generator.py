"""TopologyPlacementGenerator: one placement for each value of the node label that a pod group names.

Source: pkg/scheduler/framework/plugins/topologyaware (Kubernetes v1.36).
"""

import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Placement, PlacementGeneratePlugin, PlacementsResult
from berth.framework.status import PluginError, failed
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_group_lookup import group_object, scheduled_pods
from berth.snapshot.pod_group_states import AnyKey
from berth.snapshot.snapshot import Snapshot

UNDECIDED = "cannot determine domain for already scheduled pods"


class TopologyPlacementGenerator(InTreePlugin, PlacementGeneratePlugin):
    """Keep a pod group within one topology domain."""

    def generate_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, parent: Placement
    ) -> PlacementsResult:
        """The parent's domains, only the one that pods of the group are in already if there are such."""
        try:
            constraints = group_object(self.handle, group).spec.scheduling_constraints
            if constraints is None or not constraints.topology:
                return PlacementsResult(placements=(parent,))
            key = constraints.topology[0].key
            taken = self._taken(state, group, nodes, key)
        except PluginError as error:
            return PlacementsResult(failed(error))
        return PlacementsResult(placements=_domains(nodes, parent, key, taken))

    def _taken(self, state: CycleState, group: AnyKey, nodes: Snapshot, key: str) -> str | None:
        """The domain of the group's scheduled pods, None where it has none.

        Raises: PluginError.
        """
        found: dict[str, None] = {}
        for pod in scheduled_pods(self.handle, state, group):
            row = nodes.row_of.get(pod.node_name)
            if row is None:
                text = f'getting node for pod {pod.key}: node "{pod.node_name}" not found'
                raise PluginError(f"{UNDECIDED}: {text}")
            value = nodes.nodes[row].labels.get(key)
            if value is None:
                raise PluginError(f"{UNDECIDED}: no topology domain found for pod {pod.key}")
            found[value] = None
            if len(found) > 1:
                text = f"more than 1 domain found for pod group: {', '.join(found)}"
                raise PluginError(f"{UNDECIDED}: {text}")
        return next(iter(found), None)


def _domains(nodes: Snapshot, parent: Placement, key: str, only: str | None) -> list[Placement]:
    ids = nodes.label_ids(key)[parent.rows]
    values = nodes.label(key).values
    return [
        Placement(values[number], parent.rows[ids == number])
        for number in np.unique(ids[ids >= 0]).tolist()
        if only is None or values[number] == only
    ]
