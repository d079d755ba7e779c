"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings nearer to equal use.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (Kubernetes v1.36);
spec/plugins.md 0.3, 5.9.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.config.plugin_args import NodeResourcesBalancedAllocationArgs
from berth.framework.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.interface import MAX_NODE_SCORE, Depends, PreScorePlugin, ScorePlugin, Scores
from berth.framework.status import SKIP, SUCCESS, Status
from berth.objects.pod import Pod
from berth.objects.pod_requests import Units, accounted_requests
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.node_resources_fit.scoring import counts
from berth.snapshot.columns import Mask
from berth.snapshot.snapshot import Snapshot

Floats = NDArray[np.float64]
PAIR = 2


@dataclass(frozen=True, slots=True)
class BalancedRequest:
    """What the pod requests of the configured resources, without defaults."""

    amounts: Units


class NodeResourcesBalancedAllocation(InTreePlugin, PreScorePlugin, ScorePlugin):
    """Score the change that the pod makes to a node's balance: 75 for none, 50 to 100."""

    depends = Depends.NODE

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = tuple(resource.name for resource in args.resources)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Work out the request; a pod that asks for none of the resources changes no balance."""
        del nodes, feasible
        amounts = self._requests(pod)
        if not any(amounts.values()):
            return SKIP
        state.write(BalancedRequest, BalancedRequest(amounts))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """Half of what balance the pod adds or takes, around 75."""
        del pod
        shares = Shares(self._resources, state.read(BalancedRequest).amounts, nodes)
        change = shares.balance(with_pod=True)
        change -= shares.balance(with_pod=False)
        # Never negative: balance is 50 to 100.
        change += MAX_NODE_SCORE // 2
        change //= 2
        change += MAX_NODE_SCORE // 2
        return change

    def sign_pod(self, pod: Pod) -> Hashable:
        """The request of the configured resources."""
        return tuple(self._requests(pod).values())

    def _requests(self, pod: Pod) -> Units:
        requests = accounted_requests(pod)
        return {name: requests.get(name, 0) for name in self._resources}


class Shares:
    """The used fraction of each resource, with and without the pod."""

    def __init__(self, resources: tuple[str, ...], requests: Mapping[str, int], nodes: Snapshot) -> None:
        self._n = len(nodes)
        self._parts = [
            (nodes.allocatable[index], nodes.requested[index], requests[name])
            for name in resources
            if counts(name, requests) and (index := nodes.resource_index(name)) is not None
        ]
        self._present = [offered != 0 for offered, _, _ in self._parts]

    def balance(self, *, with_pod: bool) -> Scores:
        """100 for equal fractions, less the more they deviate.

        Shapes: result int64 (n,).
        """
        fractions = [
            np.minimum((used + amount if with_pod else used) / np.maximum(offered, 1), 1.0)
            for offered, used, amount in self._parts
        ]
        if len(fractions) < PAIR:
            return np.full(self._n, MAX_NODE_SCORE, dtype=np.int64)
        if len(fractions) == PAIR:
            deviation = np.abs((fractions[0] - fractions[1]) / 2)
            deviation *= self._present[0] & self._present[1]
        else:
            deviation = self._deviation(fractions)
        balance: Scores = ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
        return balance

    def _deviation(self, fractions: list[Floats]) -> Floats:
        """The standard deviation over the resources that each node has.

        Sums run in the order of the resources, one at a time, as upstream's do, for the same rounding.
        """
        count = np.sum(self._present, axis=0)
        total, squares = np.zeros(self._n), np.zeros(self._n)
        for fraction, present in zip(fractions, self._present, strict=True):
            total += fraction * present
        mean = total / np.maximum(count, 1)
        for fraction, present in zip(fractions, self._present, strict=True):
            squares += (fraction - mean) * (fraction - mean) * present
        deviation = np.sqrt(squares / np.maximum(count, 1))
        high = np.max([np.where(p, f, -1.0) for f, p in zip(fractions, self._present, strict=True)], axis=0)
        low = np.min([np.where(p, f, 2.0) for f, p in zip(fractions, self._present, strict=True)], axis=0)
        of_two: Floats = np.abs((high - low) / 2)
        return np.where(count > PAIR, deviation, np.where(count == PAIR, of_two, 0.0))
