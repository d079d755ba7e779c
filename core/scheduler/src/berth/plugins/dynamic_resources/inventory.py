"""All devices that drivers publish, in pools, and which of them each node can reach.

Nodes that reach the same slices and devices share one view, so that they are one question to the allocator.

    slices --Inventory--> pools of devices, and the targets that they name (a node, a selector, all nodes)
    targets x nodes --groups--> a number for each node --view--> the pools as those nodes see them

Views whose pools and devices differ in their names alone are of one shape.

Source: dynamic-resource-allocation structured/internal/stable/pools_stable.go (Kubernetes v1.36).
"""

from collections.abc import Generator, Hashable, Iterable, Sequence
from weakref import WeakValueDictionary

import numpy as np

from berth.cel import Look
from berth.objects.devices.devices import DeviceSpec, ResourceSlice
from berth.objects.node_selector import NodeSelector
from berth.objects.steps import Steps
from berth.plugins.dynamic_resources.devices import (
    ANSWERS_KEPT,
    Device,
    DeviceKind,
    Target,
    kind_key,
)
from berth.plugins.dynamic_resources.pools import DevicePool, newest
from berth.snapshot.columns.growing import Ints
from berth.snapshot.node_matching import matching_nodes
from berth.snapshot.snapshot import Snapshot

MAX_ANSWERS = 2**21
"""How many answers are remembered for all kinds together; each takes about 40 bytes."""
IN_A_STEP = 16
"""This many views are made in one step."""
LEAST_KEPT = 16
"""This many selectors are remembered however many kinds there are."""


class Frame:
    """One object for all parts of pools with equal problems, counters and places of devices."""

    __slots__ = ("__weakref__",)


Frames = WeakValueDictionary[Hashable, Frame]


class PoolPart:
    """The devices of one pool that some nodes reach; `number` is the pool's in its inventory."""

    __slots__ = ("devices", "frame", "number", "places", "pool")

    def __init__(self, number: int, pool: DevicePool, places: Sequence[int], frames: Frames) -> None:
        self.number = number
        self.pool = pool
        self.places = tuple(places)
        self.devices = [pool.devices[place] for place in places]
        counters = tuple((name.counter_set, name.counter) for name in pool.counters)
        key = pool.problem, counters, () if pool.problem else self.places
        frame = frames.get(key)
        if frame is None:
            frame = frames[key] = Frame()
        self.frame = frame


class Shape:
    """What views have in common that differ in names alone: one object for all of them.

    `frame` has the frame of each pool's part, in the order in which they are tried; `kinds` are those of all
    usable devices.
    """

    __slots__ = ("__weakref__", "frame", "kinds")

    def __init__(self, frame: Hashable, kinds: tuple[DeviceKind, ...]) -> None:
        self.frame = frame
        self.kinds = kinds


Shapes = WeakValueDictionary[Hashable, Shape]


class ReachableDevices:
    """The devices that some nodes reach, pool by pool."""

    def __init__(self, parts: Iterable[PoolPart], answers_kept: int, shapes: Shapes) -> None:
        self._answers_kept = answers_kept
        self.parts = sorted(parts, key=lambda part: part.pool.waits_to_bind)
        self.has_invalid = any(part.pool.invalid for part in self.parts)
        self.usable = [d for part in self.parts if not part.pool.problem for d in part.devices]
        """The devices of pools without a problem, in the order they are tried."""
        self.numbers = [part.number for part in self.parts if not part.pool.problem]
        """The numbers of the pools without a problem."""
        self._shapes = shapes
        frame: Hashable = tuple(part.frame for part in self.parts)
        kinds = tuple(device.kind for device in self.usable)
        shape = shapes.get((frame, kinds))
        if shape is None:
            shape = shapes[frame, kinds] = Shape(frame, kinds)
        self.shape = shape
        self._matching: dict[tuple[str, ...], list[Device]] = {}

    def reduced_to(self, parts: Iterable[PoolPart]) -> "ReachableDevices":
        """A view of some of its parts."""
        return ReachableDevices(parts, self._answers_kept, self._shapes)

    def matching(self, selectors: tuple[str, ...], look: Look) -> Generator[None, None, list[Device]]:
        """The devices of usable pools that every selector holds for, in the order they are tried.

        Evaluating takes long, so this is a generator that stops after each device.
        Raises: SelectorError, and what `look` raises.
        """
        found = self._matching.get(selectors)
        if found is None:
            found = []
            for device in self.usable:
                if device.matches_all(selectors, look):
                    found.append(device)
                yield
            if len(self._matching) >= self._answers_kept:
                self._matching.clear()
            self._matching[selectors] = found
        return found


class Inventory:
    """Every pool, made once for each state of the slices.

    Pools, views, kinds and shapes that stayed as they were are taken over from the inventory `before`.
    """

    def __init__(self, slices: Iterable[ResourceSlice], before: "Inventory | None" = None) -> None:
        self.kinds: WeakValueDictionary[Hashable, DeviceKind] = WeakValueDictionary()
        """The kinds of all devices."""
        self.frames: Frames = WeakValueDictionary()
        """The frames of all parts of pools."""
        self.shapes: Shapes = WeakValueDictionary()
        """The shapes of all views."""
        earlier: dict[tuple[str, str], DevicePool] = {}
        if before is not None:
            self.kinds, self.frames, self.shapes = before.kinds, before.frames, before.shapes
            earlier = {(pool.driver, pool.name): pool for pool in before.pools}
        self.pools: list[DevicePool] = [
            known
            if (known := earlier.get((driver, name))) is not None and known.made_of(parts)
            else DevicePool(driver, name, parts, self._kind)
            for (driver, name), parts in sorted(newest(slices).items())
        ]
        self.number_of = {(pool.driver, pool.name): number for number, pool in enumerate(self.pools)}
        """The number of each pool by driver and name."""
        self._answers_kept = _share(len(self.kinds))
        for kind in self.kinds.values():
            kind.answers_kept = self._answers_kept
        self._pools_of: dict[Target, list[int]] = {}
        for number, pool in enumerate(self.pools):
            for target in pool.places:
                self._pools_of.setdefault(target, []).append(number)
        self._names = frozenset(t for t in self._pools_of if isinstance(t, str))
        self._selectors = [t for t in self._pools_of if isinstance(t, NodeSelector)]
        self._whole: dict[int, PoolPart] = {}
        self._numbers: dict[tuple[str, bytes], int] = {}
        self.views: list[ReachableDevices] = []
        """The views by number."""
        self.views_of: list[list[int]] = [[] for _ in self.pools]
        """The numbers of the views that each pool is in, by the pool's number."""
        self._grouped_nodes: Snapshot | None = None
        self._grouped_at = -1
        self._groups: Ints = np.zeros(0, dtype=np.int64)

    def groups(self, nodes: Snapshot) -> Steps[Ints]:
        """The number of each node's view, in steps.

        Shapes: result int64 (n,). Cost: worked out once while nodes and slices stay as they are.
        """
        whole = nodes.whole
        if self._grouped_nodes is not whole or self._grouped_at != whole.static_generation:
            groups = yield from self._grouped(whole)
            self._grouped_nodes, self._grouped_at = whole, whole.static_generation
            self._groups = groups
        return self._groups[nodes.rows]

    def view(self, group: int) -> ReachableDevices:
        """The view of that number."""
        return self.views[group]

    def _kind(self, driver: str, spec: DeviceSpec) -> DeviceKind:
        key = kind_key(driver, spec)
        kind = self.kinds.get(key)
        if kind is None:
            kind = self.kinds[key] = DeviceKind(driver, spec)
        return kind

    def _grouped(self, nodes: Snapshot) -> Steps[Ints]:
        n = len(nodes)
        masks = []
        for selector in self._selectors:
            masks.append((yield from matching_nodes(nodes, selector)))
            yield
        reached = np.array(masks, dtype=bool).reshape(len(masks), n)
        patterns, numbers = np.unique(reached, axis=1, return_inverse=True)
        rows = numbers.reshape(n).tolist()
        keys = [patterns[:, i].tobytes() for i in range(patterns.shape[1])]
        found: Ints = np.zeros(n, dtype=np.int64)
        for row, (name, number) in enumerate(zip(nodes.names, rows, strict=True)):
            before = len(self.views)
            found[row] = self._group(name if name in self._names else "", keys[number])
            if len(self.views) > before and len(self.views) % IN_A_STEP == 0:
                yield
        return found

    def _group(self, name: str, pattern: bytes) -> int:
        number = self._numbers.get((name, pattern))
        if number is None:
            number = self._numbers[name, pattern] = len(self.views)
            view = self._make_view(name, pattern)
            self.views.append(view)
            for part in view.parts:
                self.views_of[part.number].append(number)
        return number

    def _make_view(self, name: str, pattern: bytes) -> ReachableDevices:
        targets: list[Target] = [None]
        targets += [s for s, reached in zip(self._selectors, pattern, strict=True) if reached]
        if name:
            targets.append(name)
        numbers = sorted({number for target in targets for number in self._pools_of.get(target, ())})
        whole = self._whole
        parts = [whole.get(number) or self._part(number, targets) for number in numbers]
        return ReachableDevices(parts, self._answers_kept, self.shapes)

    def _part(self, number: int, targets: Sequence[Target]) -> PoolPart:
        """What those targets reach of a pool; one that has a single target is one part for all views."""
        pool = self.pools[number]
        if len(pool.places) > 1:
            places = sorted(place for target in targets for place in pool.places.get(target, ()))
            return PoolPart(number, pool, places, self.frames)
        whole = PoolPart(number, pool, range(len(pool.devices)), self.frames)
        self._whole[number] = whole
        return whole


def _share(kinds: int) -> int:
    """How many selectors' answers are remembered for each of so many kinds."""
    return max(LEAST_KEPT, min(ANSWERS_KEPT, MAX_ANSWERS // max(kinds, 1)))
