"""The scoring strategies: LeastAllocated, MostAllocated, RequestedToCapacityRatio."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from berth.config.plugin_args import RequestedToCapacityRatioParam, ScoringStrategy
from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import broken_linear
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from berth.plugins.device_offers import Amounts
from berth.plugins.resource_shares import (
    PERCENT,
    Floats,
    Numbers,
    Offer,
    considered,
    each_once,
    floor_divided,
    offer,
    offered_amounts,
    offers,
    percent,
    percents,
    with_pod,
)
from berth.snapshot.columns.growing import ByRow, Ints, Rows
from berth.snapshot.columns.resource_columns import BASIC_RESOURCES
from berth.snapshot.snapshot import Snapshot

MAX_SHAPE_SCORE = 10
NON_ZERO_ROWS = {CPU: 0, MEMORY: 1}


class ScoreTerm(NamedTuple):
    """What one resource adds to the score of a row: its offer, its use, the pod's request and its weight."""

    offered: ByRow
    used: ByRow
    request: int
    weight: int


class ScoringStrategyScorer(ABC):
    """How full nodes would be with the pod, turned into scores."""

    def __init__(self, weights: tuple[tuple[str, int], ...]) -> None:
        self._weights = weights
        # These have a place in the columns, whatever nodes offer, and count for every pod.
        self._all_basic = all(name in BASIC_RESOURCES for name, _ in weights)

    @abstractmethod
    def scores(self, requests: Mapping[str, int], nodes: Snapshot) -> Scores:
        """Scores from 0 to 100.

        Shapes: result int64 (n,).
        """

    def score_of_row(self, requests: Mapping[str, int], nodes: Snapshot) -> Callable[[int], int]:
        """A function from a row of the whole snapshot to its score."""
        parts = [
            ScoreTerm(
                offered_amounts(nodes, name).data, usage_on_rows(nodes, name), requests.get(name, 0), weight
            )
            for name, weight in self._counted(requests, nodes)
        ]
        return self._of_row(parts)

    def scores_of_rows(self, requests: Mapping[str, int], nodes: Snapshot) -> Callable[[Rows], Scores] | None:
        """The same as a function of rows of the whole snapshot; None where there is none."""
        del requests, nodes
        return None

    def scores_with_devices(
        self, requests: Mapping[str, int], nodes: Snapshot, devices: Mapping[str, Amounts]
    ) -> Scores:
        """The scores where devices stand behind some resources: these have other amounts than the snapshot's.

        Shapes: result int64 (n,).
        """
        parts: list[ScoreTerm] = []
        columns: list[list[int]] = []
        for name, weight in self._weights:
            if not counts(name, requests):
                continue
            offered = devices[name].offered if name in devices else nodes.offered(name)
            if offered is not None:
                used = devices[name].used if name in devices else usage(nodes, name)
                columns += [offered.tolist(), used.tolist()]
                parts.append(ScoreTerm(columns[-2], columns[-1], requests.get(name, 0), weight))
        return np.array(each_once(self._of_row(parts), columns, len(nodes)), dtype=np.int64)

    @abstractmethod
    def _of_row(self, parts: Sequence[ScoreTerm]) -> Callable[[int], int]:
        """The score of one row, made of these parts."""

    def _counted(self, requests: Mapping[str, int], nodes: Snapshot) -> tuple[tuple[str, int], ...]:
        """The resources that some node offers, of those that enter the score of a pod, with their weights."""
        if self._all_basic:
            return self._weights
        return tuple(
            (name, weight)
            for name, weight in self._weights
            if counts(name, requests) and nodes.offered(name) is not None
        )


def counts(name: str, requests: Mapping[str, int]) -> bool:
    """Whether a resource enters the score of a pod: scalars only where it requests some."""
    if is_scalar(name):
        return requests.get(name, 0) != 0
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE)


def usage(nodes: Snapshot, name: str) -> Ints:
    """What placed pods hold, with scoring's defaults for cpu and memory."""
    row = NON_ZERO_ROWS.get(name)
    held: Ints = nodes.held(name) if row is None else nodes.non_zero_requested[row]
    return held


def usage_on_rows(nodes: Snapshot, name: str) -> ByRow:
    """The same for single rows of the whole snapshot."""
    row = NON_ZERO_ROWS.get(name)
    return nodes.held_on_rows(name) if row is None else nodes.non_zero_requested[row].data


class Averaged(ScoringStrategyScorer):
    """The weighted mean over resources, rounded down."""

    def scores(self, requests: Mapping[str, int], nodes: Snapshot) -> Scores:
        """The mean of each resource's percentage."""
        counted = self._counted(requests, nodes)
        if not counted:
            return np.zeros(len(nodes), dtype=np.int64)
        parts = nodes.scratch(len(counted))
        self._percents(tuple([name for name, _ in counted]), requests, nodes, parts)
        return _means(parts, counted, considered(nodes, counted))

    def _percents(
        self, names: tuple[str, ...], requests: Mapping[str, int], nodes: Snapshot, parts: Floats
    ) -> None:
        """Put whole percents of each resource into its part. Shapes: parts float64 (r, n)."""
        for name, part in zip(names, parts, strict=True):
            made = self._percent(name, requests.get(name, 0), nodes, part)
            if made is not part:
                part[:] = made

    def _of_row(self, parts: Sequence[ScoreTerm]) -> Callable[[int], int]:
        percent_of = self._percent_of

        def score(row: int) -> int:
            total = weights = 0
            for offered, used, request, weight in parts:
                there = offered[row]
                if there:
                    total += weight * percent_of(there, used[row] + request)
                    weights += weight
            return total // weights if weights else 0

        return score

    @staticmethod
    @abstractmethod
    def _percent_of(offered: int, used: int) -> int:
        """The same for one node that has some of the resource."""

    @abstractmethod
    def _percent(self, name: str, request: int, nodes: Snapshot, scratch: Floats) -> Numbers:
        """Whole percents, 0 where the node has none of the resource; in `scratch` where they are floats."""


class LeastAllocated(Averaged):
    """Prefer nodes with most left: what is free in percent, 0 where more is asked than there is."""

    def _percent(self, name: str, request: int, nodes: Snapshot, scratch: Floats) -> Numbers:
        offered = offer(nodes, name)
        free = np.subtract(offered.amount, with_pod(usage(nodes, name), request, offered, scratch))
        return percents(np.maximum(free, 0, out=free), offered)

    def _percents(
        self, names: tuple[str, ...], requests: Mapping[str, int], nodes: Snapshot, parts: Floats
    ) -> None:
        offered = offers(nodes, names)
        if not offered.exact:
            super()._percents(names, requests, nodes, parts)
            return
        np.subtract(_percents_left(nodes, names), _hundredfold(names, requests), out=parts)
        # Looking for the lowest takes half the time of cutting off what is below 0.
        if parts.min(initial=0) < 0:
            np.maximum(parts, 0, out=parts)
        floor_divided(parts, offered.divisors)

    def scores_of_rows(self, requests: Mapping[str, int], nodes: Snapshot) -> Callable[[Rows], Scores] | None:
        """What is left of each resource is a column of the snapshot, of which rows are taken."""
        counted = self._counted(requests, nodes)
        names = tuple([name for name, _ in counted])
        if not names or not (offered := offers(nodes, names)).exact:
            return None
        asked, weights = _hundredfold(names, requests), considered(nodes, counted)

        def scores(rows: Rows) -> Scores:
            parts = _percents_left(nodes, names).take(rows, axis=1)
            parts -= asked
            np.maximum(parts, 0, out=parts)
            floor_divided(parts, offered.divisors.take(rows, axis=1))
            return _means(parts, counted, weights.take(rows))

        return scores

    @staticmethod
    def _percent_of(offered: int, used: int) -> int:
        return percent(offered - used, offered)


def _means(parts: Floats, counted: Sequence[tuple[str, int]], weights: Floats) -> Scores:
    """The weighted means of whole percents, which are changed.

    Shapes: parts float64 (r, k); weights float64 (k,), the sums of the weights that count on each node.
    """
    if any(weight != 1 for _, weight in counted):
        parts *= [[weight] for _, weight in counted]
    total = parts[0]
    for part in parts[1:]:
        total += part
    # Sums of percentages times weights are small integers, so the float quotient's floor is exact.
    np.divide(total, weights, out=total)
    # By way of int32, which takes half the time of going straight to int64.
    means: Scores = total.astype(np.int32).astype(np.int64)
    return means


def _hundredfold(names: Sequence[str], requests: Mapping[str, int]) -> Floats:
    """A hundred times what is requested. Shapes: result float64 (r, 1)."""
    return np.array([[float(PERCENT * requests.get(name, 0))] for name in names])


def _percents_left(nodes: Snapshot, names: tuple[str, ...]) -> Floats:
    """A hundred times what is left of each resource, not to be written to. Shapes: result float64 (r, n)."""
    return nodes.of_rows(("percents left", names), partial(_left, names), partial(_left_on_row, names))


def _left(names: Sequence[str], nodes: Snapshot) -> Floats:
    """A hundred times what is left; exact where it is not negative, because offers are below 2**46."""
    left = np.empty((len(names), len(nodes)))
    for name, part in zip(names, left, strict=True):
        np.subtract(offered_amounts(nodes, name), usage(nodes, name), out=part, dtype=np.float64)
    left *= PERCENT
    return left


def _left_on_row(names: Sequence[str], nodes: Snapshot) -> Callable[[int], list[int]]:
    columns = [(offered_amounts(nodes, name).data, usage_on_rows(nodes, name)) for name in names]
    return lambda row: [PERCENT * (offered[row] - used[row]) for offered, used in columns]


class MostAllocated(Averaged):
    """Prefer nodes with least left: what is used in percent."""

    def _percent(self, name: str, request: int, nodes: Snapshot, scratch: Floats) -> Numbers:
        offered = offer(nodes, name)
        return percent_used(offered, with_pod(usage(nodes, name), request, offered, scratch))

    @staticmethod
    def _percent_of(offered: int, used: int) -> int:
        return percent(used, offered)


def percent_used(offered: Offer, used: Numbers) -> Numbers:
    """Use in whole percents, at most 100; 0 where the node has none of the resource."""
    np.minimum(offered.amount, used, out=used)
    return percents(used, offered)


class RequestedToCapacityRatio(ScoringStrategyScorer):
    """Map each resource's use through a broken line, and average those that come out above 0."""

    def __init__(self, weights: tuple[tuple[str, int], ...], param: RequestedToCapacityRatioParam) -> None:
        super().__init__(weights)
        scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
        points = [(point.utilization, point.score * scale) for point in param.shape]
        self._at = np.array([broken_linear(points, p) for p in range(101)], dtype=np.int64)

    def scores(self, requests: Mapping[str, int], nodes: Snapshot) -> Scores:
        """The weighted mean over resources with a score above 0, halves rounded up."""
        total = np.zeros(len(nodes), dtype=np.int64)
        weight_sum = np.zeros(len(nodes), dtype=np.int64)
        (scratch,) = nodes.scratch(1)
        for name, weight in self._counted(requests, nodes):
            offered = offer(nodes, name)
            used = with_pod(usage(nodes, name), requests.get(name, 0), offered, scratch)
            part = self._at[percent_used(offered, used).astype(np.intp)]
            part[offered.amount == 0] = 0
            total += weight * part
            weight_sum += weight * (part > 0)
        np.maximum(weight_sum, 1, out=weight_sum)
        # The quotients are small, so upstream's rounding of a float quotient equals this exact one.
        rounded: Scores = (2 * total + weight_sum) // (2 * weight_sum)
        return rounded

    def _of_row(self, parts: Sequence[ScoreTerm]) -> Callable[[int], int]:
        at = self._at.tolist()

        def score(row: int) -> int:
            total = weights = 0
            for offered, used, request, weight in parts:
                there = offered[row]
                part = at[percent(used[row] + request, there)] if there else 0
                if part:
                    total += weight * part
                    weights += weight
            return (2 * total + weights) // (2 * weights) if weights else 0

        return score


def scorer(strategy: ScoringStrategy) -> ScoringStrategyScorer:
    """The strategy as configured.

    Raises: ValueError where there is no such strategy.
    """
    weights = tuple((r.name, r.weight) for r in strategy.resources)
    match strategy.type:
        case "LeastAllocated":
            return LeastAllocated(weights)
        case "MostAllocated":
            return MostAllocated(weights)
        case "RequestedToCapacityRatio" if strategy.requested_to_capacity_ratio is not None:
            return RequestedToCapacityRatio(weights, strategy.requested_to_capacity_ratio)
    raise ValueError(f"scoring strategy {strategy.type!r} is not supported")
