"""How full parts of the cluster would be with a pod group.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go ScorePlacement (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from berth.framework.interface import MAX_NODE_SCORE, ProposedPlacement, Scores
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import Units, scored_requests
from berth.plugins.node_resources_fit.scoring import counts, usage
from berth.snapshot.columns.growing import Ints, Rows
from berth.snapshot.snapshot import Snapshot


def placement_scores(
    nodes: Snapshot, proposed: Sequence[ProposedPlacement], weights: tuple[tuple[str, int], ...]
) -> Scores:
    """The weighted mean over resources of what is used in percent, each placement taken as one big node.

    Placements may overlap. Shapes: result int64 (k,).
    Cost: O(rows of all placements) in numpy, O(placements) in Python.
    """
    requests = _requests(proposed)
    sums = _RowSums([one.placement.rows for one in proposed])
    totals, weight_sums = [0] * len(proposed), [0] * len(proposed)
    for name, weight in weights:
        counted = {key: counts(name, each) for key, each in {id(each): each for each in requests}.items()}
        offered = nodes.offered(name)
        if offered is None or not any(counted.values()):
            continue
        capacities = sums.of(offered)
        used = sums.of(np.where(offered != 0, usage(nodes, name), 0))
        for i, (capacity, held, asked) in enumerate(zip(capacities, used, requests, strict=True)):
            if capacity and counted[id(asked)]:
                full = min(held + asked.get(name, 0), capacity)
                totals[i] += weight * (full * MAX_NODE_SCORE // capacity)
                weight_sums[i] += weight
    means = [total // weight if weight else 0 for total, weight in zip(totals, weight_sums, strict=True)]
    return np.array(means, dtype=np.int64)


class _RowSums:
    """Sums of columns over several sets of rows."""

    def __init__(self, sets: Sequence[Rows]) -> None:
        self._sizes = np.array([rows.size for rows in sets], dtype=np.intp)
        self._rows = np.concatenate(sets) if sets else np.zeros(0, dtype=np.intp)
        self._some = self._sizes > 0
        self._starts = (np.cumsum(self._sizes) - self._sizes)[self._some]

    def of(self, column: Ints) -> list[int]:
        """One sum for each set, exact. Shapes: column int64 (n,)."""
        sums = np.zeros(self._sizes.size, dtype=np.int64)
        if self._starts.size:
            sums[self._some] = np.add.reduceat(column[self._rows], self._starts)
        found: list[int] = sums.tolist()
        return found


def _requests(proposed: Sequence[ProposedPlacement]) -> list[Mapping[str, int]]:
    """What all pods of each proposal request; proposals of the same pods often share one list of these."""
    known: dict[int, Mapping[str, int]] = {}
    for one in proposed:
        if id(one.assignments) not in known:
            known[id(one.assignments)] = _together([pod for pod, _ in one.assignments])
    return [known[id(one.assignments)] for one in proposed]


def _together(pods: Sequence[Pod]) -> Units:
    """What the pods request together; those of one template are multiplied."""
    of_template = {id(pod.template): pod for pod in pods}
    total: Counter[str] = Counter()
    for template, many in Counter(id(pod.template) for pod in pods).items():
        requests = scored_requests(of_template[template])
        total.update({name: many * amount for name, amount in requests.items()})
    return total
