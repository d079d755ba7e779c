"""Whose turn it is: the queue that has the least for its weight, at each level of the tree.

A waiting pod stands for what its queue would have once it, and those of the queue before it, are placed.
Queues within their quota go before those over it; of these the higher priority goes first, then the lower
dominant share over quota, then the lower share in all. The pods of a group stand at the place of its first
one, with what all of them want.

Among roots, and among queues of namespaces, shares are parts of what all nodes offer; within a tree, of the
parent's subtree quota. Placing a pod changes no key of those behind it, for it was counted before them
already.

Source: Kueue's fair sharing (KEP-1714), KAI Scheduler's order of queues.
"""

from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import islice

from berth_queues.amounts import Amounts, add
from berth_queues.dominant import dominant_share
from berth_queues.registry import Registry
from berth_queues.tree import NO_AMOUNTS, Queue
from berth_queues.waiting import WaitingPod, WaitingPods
from berth_sdk import SortKey

MAX_TURNS = 16_384
"""How many turns of one root are worked out; pods beyond stand where they came."""
MAX_IN_VAIN = 256
"""How many pods of one queue that have no room are looked at after each removal: all of one kind are one."""


@dataclass(slots=True)
class Turn:
    """Pods that have their turn together; what they want counts for those behind it if `counts` is set."""

    pods: list[WaitingPod]
    amounts: Amounts
    counts: bool


class Order:
    """The order of all waiting pods, by what queues use and pods want."""

    def __init__(self, registry: Registry, waiting: WaitingPods) -> None:
        self._registry, self._waiting = registry, waiting

    def unit(self, queue: str) -> str:
        """Return the name of the root, or child of a root that shares apart, of the queue."""
        found = self._registry.queue(queue)
        if found is None:
            return queue
        path = list(found.path())
        return path[-2].name if path[-1].spec.shares_apart and len(path) > 1 else path[-1].name

    def last(self, pod: WaitingPod) -> SortKey:
        """Return the key of a pod that came last. Cost: O(queues of its tree * priorities)."""
        unit = self.unit(pod.queue)
        sums = dict(self._registry.used(unit))
        for name in self._below(unit):
            if name in self._waiting.lines:
                for priority, ahead in self._waiting.lines[name].ahead.items():
                    if priority >= pod.priority or name != pod.queue:
                        add(sums, ahead)
        if not pod.before_others:
            add(sums, pod.amounts)
        return self._key(unit, sums)

    def keys(self, unit: str) -> Iterator[tuple[WaitingPod, SortKey]]:
        """Yield the waiting pods of a root in their turn, each with its key. Cost: O(n log n)."""
        queue = self._registry.queue(unit)
        turns = self._of_leaf(unit) if queue is None else self._turns(queue, self._of_leaf)
        sums = dict(self._registry.used(unit))
        for turn in islice(turns, MAX_TURNS):
            add(sums, turn.amounts)
            key = self._key(unit, sums)
            if not turn.counts:
                add(sums, turn.amounts, -1)
            for pod in turn.pods:
                yield pod, key

    def refused(self, root: str, left_out: Container[Hashable]) -> Iterator[Turn]:
        """Yield the pods of a root that their queues refused, in their turn, those of some kinds left out.

        No turn counts for those behind it unless the caller says so of it before the next one.
        """
        queue = self._registry.queue(root)
        if queue is not None:
            yield from self._turns(queue, partial(self._refused_of_leaf, left_out))

    def share(self, name: str) -> int:
        """Return the dominant share of what a root, or a namespace's queue, uses. Units: millionths."""
        return dominant_share(self._registry.used(name), NO_AMOUNTS, self._registry.offered, 1.0).in_all

    def _below(self, unit: str) -> Iterator[str]:
        queue = self._registry.queue(unit)
        if queue is None:
            yield unit
            return
        waits = [queue]
        while waits:
            each = waits.pop()
            yield each.name
            waits += each.children

    def _key(self, unit: str, sums: Amounts) -> SortKey:
        queue, offered = self._registry.queue(unit), self._registry.offered
        if queue is None:
            weight = self._registry.weight(unit.removeprefix("Namespace "))
            share = dominant_share(sums, NO_AMOUNTS, offered, weight)
            return _ordered(share.over_quota, 0, share.in_all)
        share = dominant_share(sums, queue.subtree, offered, self._registry.weight_of(queue))
        return _ordered(share.over_quota, queue.spec.priority, share.in_all)

    def _turns(self, queue: Queue, of_leaf: Callable[[str], Iterator[Turn]]) -> Iterator[Turn]:
        """Yield the turns of a queue and of those below it. The depth is bounded by that of trees."""
        if not queue.children:
            yield from of_leaf(queue.name)
            return
        total = {**self._registry.offered, **queue.subtree}
        heap: list[tuple[SortKey, str, _Merging]] = []
        for child in queue.children:
            weight = self._registry.weight_of(child)
            _push(heap, _Merging(child, weight, dict(child.used), self._turns(child, of_leaf), total))
        while heap:
            _, _, merging = heappop(heap)
            assert merging.turn is not None, "only those with a turn are in the heap"
            yield merging.turn
            if merging.turn.counts:
                add(merging.sums, merging.turn.amounts)
            _push(heap, merging)

    def _of_leaf(self, name: str) -> Iterator[Turn]:
        if name not in self._waiting.lines:
            return
        groups = set()
        pods = self._waiting.lines[name].pods.values()
        for pod in sorted(pods, key=_place):
            if pod.placed or pod.group in groups:
                continue
            groups |= {pod.group} - {None}
            turn = self._turn(pod)
            turn.counts = any(each.before_others for each in turn.pods)
            yield turn

    def _refused_of_leaf(self, left_out: Container[Hashable], name: str) -> Iterator[Turn]:
        line = self._waiting.lines.get(name)
        kinds = [] if line is None else [(kind, [*alike.values()]) for kind, alike in line.refused.items()]
        for _, pods in kinds:
            pods.sort(key=_place, reverse=True)
        heap = [(_place(pods[-1]), number) for number, (_, pods) in enumerate(kinds)]
        heapify(heap)
        groups, in_vain = set(), 0
        while heap:
            _, number = heappop(heap)
            kind, pods = kinds[number]
            if kind in left_out:
                continue
            pod = pods.pop()
            if pods:
                heappush(heap, (_place(pods[-1]), number))
            if pod.group is None or pod.group not in groups:
                groups.add(pod.group)
                turn = self._turn(pod)
                yield turn
                in_vain += not turn.counts
                if in_vain >= MAX_IN_VAIN:
                    return

    def _turn(self, pod: WaitingPod) -> Turn:
        """Return the turn of a pod, with all of its group that wait in its queue."""
        together = [pod]
        if pod.group is not None:
            members = self._waiting.by_group.get(pod.group, {}).values()
            together = [each for each in members if not each.placed and each.queue == pod.queue]
        sums: dict[str, int] = {}
        for each in together:
            add(sums, each.amounts)
        return Turn(together, sums, counts=False)


@dataclass(slots=True)
class _Merging:
    """A child whose turns are merged with its siblings'."""

    queue: Queue
    weight: float
    sums: dict[str, int]
    turns: Iterator[Turn]
    total: Amounts
    turn: Turn | None = None

    def key(self, turn: Turn) -> SortKey:
        """Return the child's place among its siblings once the turn's pods are placed."""
        after = dict(self.sums)
        add(after, turn.amounts)
        share = dominant_share(after, self.queue.subtree, self.total, self.weight)
        return _ordered(share.over_quota, self.queue.spec.priority, share.in_all)


def _place(pod: WaitingPod) -> tuple[int, int]:
    return -pod.priority, pod.number


def _push(heap: list[tuple[SortKey, str, _Merging]], merging: _Merging) -> None:
    merging.turn = next(merging.turns, None)
    if merging.turn is not None:
        heappush(heap, (merging.key(merging.turn), merging.queue.name, merging))


def _ordered(over: int, priority: int, in_all: int) -> SortKey:
    return (1, -priority, over, in_all) if over else (0, 0, 0, in_all)
