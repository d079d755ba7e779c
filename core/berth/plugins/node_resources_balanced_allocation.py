"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings nearer to equal use.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (Kubernetes v1.36);
spec/plugins.md 0.3, 5.9.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
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
from berth.plugins.resource_shares import offer
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
        before = shares.balance()
        shares.add_pod()
        change = np.subtract(shares.balance(), before, out=before)
        # Balance is 50 to 100, so what is halved and cut to a whole number is never below 0, and the other 50
        # may be added before that.
        change += MAX_NODE_SCORE // 2 + MAX_NODE_SCORE
        change *= 0.5
        return change.astype(np.int64)

    def score_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Callable[[int], int]:
        """The same for one row."""
        del pod
        requests = state.read(BalancedRequest).amounts
        parts = [
            (memoryview(offered), nodes.held_on_rows(name), requests[name])
            for name in self._resources
            if counts(name, requests) and (offered := nodes.offered(name)) is not None
        ]

        def score(row: int) -> int:
            before, after = [], []
            for offered, held, amount in parts:
                there = offered[row]
                if there:
                    used = float(held[row])
                    before.append(min(used / there, 1.0))
                    after.append(min((used + amount) / there, 1.0))
            change = balance_of(after) - balance_of(before)
            return (change + MAX_NODE_SCORE // 2 + MAX_NODE_SCORE) // 2

        return score

    def sign_pod(self, pod: Pod) -> Hashable:
        """The request of the configured resources."""
        return tuple(self._requests(pod).values())

    def _requests(self, pod: Pod) -> Units:
        requests = accounted_requests(pod)
        return {name: requests.get(name, 0) for name in self._resources}


class Shares:
    """The used fraction of each resource that counts for a pod; first without the pod, then with it."""

    def __init__(self, resources: tuple[str, ...], requests: Mapping[str, int], nodes: Snapshot) -> None:
        self._n = len(nodes)
        names = [name for name in resources if counts(name, requests) and nodes.offered(name) is not None]
        self._amounts = [requests[name] for name in names]
        self._used: list[Floats] = [nodes.held(name).astype(np.float64) for name in names]
        self._offered = [offer(nodes, name).divisor for name in names]
        self._present = [present(nodes, name) for name in names]

    def add_pod(self) -> None:
        """Count the pod's request as used."""
        for used, amount in zip(self._used, self._amounts, strict=True):
            if amount:
                np.add(used, amount, out=used)

    def balance(self) -> Floats:
        """100 for equal fractions, less the more they deviate; whole numbers.

        Shapes: result float64 (n,).
        """
        fractions = [capped(u / o) for u, o in zip(self._used, self._offered, strict=True)]
        if len(fractions) < PAIR:
            return np.full(self._n, float(MAX_NODE_SCORE))
        twice = self._of_pair(*fractions) if len(fractions) == PAIR else 2.0 * self._of_many(fractions)
        # Halves and doubles are exact in float64, so this rounds as (1 - deviation) * 100 does.
        np.subtract(2.0, twice, out=twice)
        twice *= MAX_NODE_SCORE // 2
        return np.trunc(twice, out=twice)

    def _of_pair(self, first: Floats, second: Floats) -> Floats:
        """Twice the deviation of two, which is their distance; 0 on nodes that have only one of them."""
        distance = np.subtract(first, second, out=first)
        np.abs(distance, out=distance)
        for mask in self._present:
            if mask is not None:
                distance *= mask
        return distance

    def _of_many(self, fractions: list[Floats]) -> Floats:
        """The standard deviation over the resources that each node has.

        Sums run in the order of the resources, one at a time, as upstream's do, for the same rounding.
        """
        masks = [np.ones(self._n, dtype=bool) if mask is None else mask for mask in self._present]
        count = np.sum(masks, axis=0)
        total, squares = np.zeros(self._n), np.zeros(self._n)
        for fraction, mask in zip(fractions, masks, strict=True):
            total += fraction * mask
        mean = total / np.maximum(count, 1)
        for fraction, mask in zip(fractions, masks, strict=True):
            squares += (fraction - mean) * (fraction - mean) * mask
        deviation = np.sqrt(squares / np.maximum(count, 1))
        high = np.max([np.where(m, f, 0.0) for f, m in zip(fractions, masks, strict=True)], axis=0)
        low = np.min([np.where(m, f, 1.0) for f, m in zip(fractions, masks, strict=True)], axis=0)
        return np.where(count > PAIR, deviation, np.where(count == PAIR, (high - low) / PAIR, 0.0))


def balance_of(fractions: Sequence[float]) -> int:
    """The balance of one node, by the fractions of the resources that it has."""
    count = len(fractions)
    if count < PAIR:
        return MAX_NODE_SCORE
    if count == PAIR:
        return int((2.0 - abs(fractions[0] - fractions[1])) * (MAX_NODE_SCORE // 2))
    # One sum after the other: `sum` of floats rounds otherwise.
    total = squares = 0.0
    for fraction in fractions:
        total += fraction
    mean = total / count
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return int((2.0 - 2.0 * math.sqrt(squares / count)) * (MAX_NODE_SCORE // 2))


def capped(shares: Floats) -> Floats:
    """The shares, at most 1, in place."""
    return np.minimum(shares, 1.0, out=shares)


def present(nodes: Snapshot, name: str) -> Mask | None:
    """Which nodes have any of a resource, which some node offers; None where all have."""
    mask: Mask = nodes.answer(("has", name), lambda table: offer(table, name).amount != 0)
    return None if mask.all() else mask
