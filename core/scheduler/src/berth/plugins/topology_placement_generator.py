"""TopologyPlacementGenerator: one placement for each value of the node label that a pod group names.

Source: pkg/scheduler/framework/plugins/topologyaware (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Placement, PlacementGeneratePlugin, PlacementsResult
from berth.framework.status import PluginError, failed
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_group_lookup import group_object, scheduled_pods
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey
from berth.snapshot.snapshot import Snapshot

BYTES_APIECE = 200

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


class _Domains(msgspec.Struct, frozen=True):
    """The domains of a label among rows, remembered as long as no node changes.

    The rows are held, so that no other array has their id meanwhile.
    """

    rows: Rows
    placements: Sequence[Placement]

    @property
    def nbytes(self) -> int:
        """About how much memory these take."""
        return self.rows.nbytes + sum(each.rows.nbytes + BYTES_APIECE for each in self.placements)


def _domains(nodes: Snapshot, parent: Placement, key: str, only: str | None) -> Sequence[Placement]:
    """The parent's domains, made once for each array of rows as long as no node changes."""
    rows = parent.rows
    within = None if rows.size == len(nodes) else id(rows)
    question = (TopologyPlacementGenerator, key, within)
    found = nodes.fact(question, lambda whole: _Domains(rows, _divided(whole, rows, key))).placements
    return found if only is None else [each for each in found if each.name == only]


def _divided(nodes: Snapshot, rows: Rows, key: str) -> Sequence[Placement]:
    """The rows by their values of the label, in the order in which the values were first seen."""
    ids = nodes.label_ids(key)[rows]
    order = np.argsort(ids, kind="stable")
    order = order[np.searchsorted(ids[order], 0) :]
    labelled = ids[order]
    starts = np.flatnonzero(np.diff(labelled, prepend=-1))
    values = nodes.label(key).values
    parts = np.split(rows[order], starts[1:]) if starts.size else []
    return [
        Placement(values[number], part) for number, part in zip(labelled[starts].tolist(), parts, strict=True)
    ]
