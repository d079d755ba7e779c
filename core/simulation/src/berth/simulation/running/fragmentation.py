"""The part of free resources that no pod could use.

Of a resource's free amount, that on nodes where a pod does not fit, for each kind of pod that asks for the
resource, weighed by how often the kind occurs. Whole nodes are looked at: how shares lie on the devices of
one node is a plugin's own business.

Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 4, by nodes.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import fit_requests
from berth.snapshot.columns.growing import Ints
from berth.snapshot.snapshot import Snapshot

MAX_KINDS = 2_000
"""Kinds of pods that are looked at, the most frequent ones."""


def fragmentation(nodes: Snapshot, pods: Iterable[Pod], resources: Iterable[str]) -> dict[str, float]:
    """The percentage of the free amount that is fragmented, of each resource that pods ask for.

    Cost: kinds * nodes steps in numpy.
    """
    kinds = Counter(tuple(sorted(fit_requests(pod).items())) for pod in pods).most_common(MAX_KINDS)
    lost: dict[str, float] = dict.fromkeys(resources, 0.0)
    asked: Counter[str] = Counter()
    for kind, count in kinds:
        fits = _fits(nodes, kind)
        for name, amount in kind:
            if amount and name in lost:
                asked[name] += count
                lost[name] += count * float(_free(nodes, name)[~fits].sum(dtype=np.float64))
    found: dict[str, float] = {}
    for name, count in asked.items():
        free = float(_free(nodes, name).sum(dtype=np.float64))
        found[name] = round(100 * lost[name] / (count * free), 3) if free else 0.0
    return dict(sorted(found.items()))


def _free(nodes: Snapshot, name: str) -> Ints:
    offered = nodes.offered(name)
    if offered is None:
        return np.zeros(len(nodes), dtype=np.int64)
    free: Ints = np.maximum(offered - nodes.held(name), 0)
    return free


def _fits(nodes: Snapshot, kind: Iterable[tuple[str, int]]) -> np.ndarray:
    fits = np.ones(len(nodes), dtype=bool)
    for name, amount in kind:
        if amount:
            fits &= _free(nodes, name) >= amount
    return fits
