"""PodGroupPodsCount: prefer placements that more pods of the group fit in.

Source: pkg/scheduler/framework/plugins/podgrouppodscount (Kubernetes v1.36).
"""

from collections.abc import Sequence

import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import MAX_NODE_SCORE, PlacementScorePlugin, ProposedPlacement, Scores
from berth.framework.status import PluginError
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_group_lookup import scheduled_pods
from berth.snapshot.pod_group_states import AnyKey
from berth.snapshot.snapshot import Snapshot

NONE_PLACED = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount(InTreePlugin, PlacementScorePlugin):
    """Score by how many pods the group would have scheduled."""

    reads_nodes = False

    def score_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, proposed: Sequence[ProposedPlacement]
    ) -> Scores:
        """Scheduled and proposed pods, the most becoming 100.

        Raises: PluginError where no placement has any.
        """
        del nodes
        before = len(scheduled_pods(self.handle, state, group))
        counts = np.array([before + len(one.assignments) for one in proposed], dtype=np.int64)
        most = int(counts.max(initial=0))
        if not most:
            raise PluginError(NONE_PLACED)
        scores: Scores = counts * MAX_NODE_SCORE // most
        return scores
