r"""Queues in a tree: what each may use by itself, borrow, and lend.

                      cohort       subtree quota 12: its own 0, 10 of a, 2 of b (b lends no more than 2)
                     /      \
    a: quota 10             b: quota 6, lending limit 2: 4 of its quota stay its own

A queue's *subtree quota* is its own quota and what its children lend. What it does not lend is its own; use
beyond that counts as use of its parent, too. Resources that no queue of a tree has a quota of are limited by
`limit` alone.

Source: Kueue's hierarchical cohorts (KEP-79), whose arithmetic this is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from berth_queues.amounts import DEVICES, Amounts

MAX_DEPTH = 8
"""Levels of a tree: what a queue costs grows with them."""
NO_AMOUNTS: Amounts = {}


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """One queue as its owner wrote it. Units: amounts as in `Amounts`."""

    name: str
    parent: str = ""
    quota: Amounts = field(default_factory=dict)
    borrowing_limit: Amounts = field(default_factory=dict)
    """How much more than its subtree quota it may use, by resource; absent: any amount."""
    lending_limit: Amounts = field(default_factory=dict)
    """How much of its subtree quota others may use, by resource; absent: all of it."""
    limit: Amounts = field(default_factory=dict)
    """How much it may use in all, by resource, borrowed or not; absent: any amount."""
    weight: float = 1.0
    """Its part of what no queue has a quota of, beside its siblings' weights."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of single resources, in place of `weight`."""
    priority: int = 0
    """Siblings of higher priority get what is over quota first."""
    owns_nodes: bool = False
    """A root's subtree quota is what all nodes offer, in place of the sum of its queues' quotas."""
    shares_apart: bool = False
    """A root whose children take turns with other roots, each by itself: it is no owner of its own."""


@dataclass(slots=True, eq=False)
class Queue:
    """A queue at its place in the tree, with the sums that follow from it."""

    spec: QueueSpec
    parent: "Queue | None" = None
    children: list["Queue"] = field(default_factory=list)
    subtree: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    """What its own pods use, and its children beyond what they do not lend."""
    quoted: set[str] = field(default_factory=set)
    """The resources that it, or a queue below it, has a quota of."""

    @property
    def name(self) -> str:
        """Return the queue's name."""
        return self.spec.name

    @property
    def root(self) -> "Queue":
        """Return the top of the queue's tree."""
        return list(self.path())[-1]

    @property
    def borrowed(self) -> dict[str, int]:
        """Return what it uses over its subtree quota, of what its tree has quotas of; nothing for a root."""
        if self.parent is None:
            return {}
        over = {name: self.used.get(name, 0) - self.subtree.get(name, 0) for name in self.root.quoted}
        return {name: over[name] for name in sorted(over) if over[name] > 0}

    def path(self) -> Iterator["Queue"]:
        """Yield the queue, its parent, and so on to the root."""
        each: Queue | None = self
        while each is not None:
            yield each
            each = each.parent

    def kept(self, resource: str) -> int:
        """Return how much of its subtree quota is not lent to others."""
        lent = self.spec.lending_limit.get(resource)
        return 0 if lent is None or self.parent is None else max(0, self.subtree.get(resource, 0) - lent)

    def lent(self, resource: str) -> int:
        """Return how much of its subtree quota counts for its parent."""
        return self.subtree.get(resource, 0) - self.kept(resource)

    def most(self, resource: str) -> int | None:
        """Return how much the queue may use in all by its own limits, None for any amount."""
        limit, borrowed = self.spec.limit.get(resource), self.spec.borrowing_limit.get(resource)
        if borrowed is not None:
            over = self.subtree.get(resource, 0) + borrowed
            limit = over if limit is None else min(limit, over)
        return limit

    def weight(self, resource: str) -> float:
        """Return its weight beside its siblings for a resource."""
        return self.spec.weights.get(resource, self.spec.weight)

    def use(self, amounts: Amounts, sign: int = 1) -> None:
        """Count amounts as used, or as free again, here and, beyond what is kept, above. Cost: O(depth)."""
        for resource, amount in amounts.items():
            delta, each = sign * amount, self
            while delta:
                before = each.used.get(resource, 0)
                after = before + delta
                if after:
                    each.used[resource] = after
                else:
                    each.used.pop(resource, None)
                if each.parent is None:
                    break
                kept = each.kept(resource)
                delta, each = max(0, after - kept) - max(0, before - kept), each.parent

    def available(self, resource: str) -> int | None:
        """Return how much more the queue may use now, None for any amount. Cost: O(depth)."""
        found: int | None = None
        for each in reversed(list(self.path())):
            found = each._available(resource, found)  # noqa: SLF001 - another queue of the same tree
        return found

    def _available(self, resource: str, above: int | None) -> int | None:
        used, own = self.used.get(resource, 0), self.subtree.get(resource, 0)
        most = self.most(resource)
        if self.parent is None:
            room = own - used if resource in self.subtree else None
        else:
            kept = self.kept(resource)
            room = None if above is None else above + max(0, kept - used)
        if most is not None:
            room = most - used if room is None else min(room, most - used)
        return room


class Tree:
    """All queues by name; a queue without a parent is a root, and roots share nothing."""

    def __init__(self, specs: Mapping[str, QueueSpec], offered: Amounts = NO_AMOUNTS) -> None:
        self.queues: dict[str, Queue] = {}
        self.errors: dict[str, str] = {}
        """Why a queue is left out, by its name."""
        for name, spec in sorted(specs.items()):
            self._add(name, spec, specs)
        for queue in self.queues.values():
            if spec_parent := queue.spec.parent:
                queue.parent = self.queues[spec_parent]
                queue.parent.children.append(queue)
        for root in self.roots():
            _sum_up(root, offered)

    def roots(self) -> list[Queue]:
        """Return the tops of all trees, by name."""
        return [queue for queue in self.queues.values() if queue.parent is None]

    def _add(self, name: str, spec: QueueSpec, specs: Mapping[str, QueueSpec]) -> None:
        seen, each = {name}, spec
        while each.parent:
            if each.parent not in specs:
                self.errors[name] = f"spec.parent: {each.parent} does not exist"
                return
            if each.parent in seen:
                self.errors[name] = f"spec.parent: {each.parent} is below itself"
                return
            if len(seen) >= MAX_DEPTH:
                self.errors[name] = f"spec.parent: more than {MAX_DEPTH} levels"
                return
            seen.add(each.parent)
            each = specs[each.parent]
        self.queues[name] = Queue(spec)


def _sum_up(queue: Queue, offered: Amounts) -> None:
    """Work out subtree quotas from the leaves up. The depth is bounded by MAX_DEPTH."""
    queue.subtree, queue.quoted = dict(queue.spec.quota), set(queue.spec.quota)
    for child in queue.children:
        _sum_up(child, offered)
        queue.quoted |= child.quoted
        for resource in child.subtree:
            queue.subtree[resource] = queue.subtree.get(resource, 0) + child.lent(resource)
    if queue.parent is None and queue.spec.owns_nodes:
        of_nodes = {name: max(0, amount - _kept_below(queue, name)) for name, amount in offered.items()}
        # Devices are in slices, and no node offers them: there the quotas of the tree count.
        queue.subtree = {name: n for name, n in queue.subtree.items() if name.endswith(DEVICES)} | of_nodes


def _kept_below(queue: Queue, resource: str) -> int:
    """Return what the queues below do not lend, which is no part of what the root divides."""
    return sum(child.kept(resource) + _kept_below(child, resource) for child in queue.children)
