"""All devices that drivers publish, in pools, and which of them each node can reach.

Nodes that reach the same slices and devices share one view, so that they are one question to the allocator.

    slices --Inventory--> pools of devices, and the targets that they name (a node, a selector, all nodes)
    targets x nodes --groups--> a number for each node --view--> the pools as those nodes see them

Source: dynamic-resource-allocation structured/internal/stable/pools_stable.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from berth.cel import CELError, Look, SyntaxProblemError, look_at_nothing, program
from berth.objects.devices.devices import DeviceSpec, ResourceSlice
from berth.objects.node_selector import NodeSelector
from berth.objects.quantity import nanos
from berth.objects.steps import Steps
from berth.plugins.dynamic_resources.device_values import device_variable
from berth.snapshot.columns.growing import Ints
from berth.snapshot.node_matching import matching_nodes
from berth.snapshot.snapshot import Snapshot

ANSWERS_KEPT = 256
"""For so many different selectors it is remembered which devices match: claims come with ever new ones."""
MAX_ANSWERS = 2**21
"""How many answers are remembered for all devices together; each takes about 40 bytes."""
LEAST_KEPT = 16
"""So many selectors are remembered however many devices there are."""


class DeviceId(NamedTuple):
    """A device's name in the cluster."""

    driver: str
    pool: str
    device: str


class CounterId(NamedTuple):
    """A counter of a set of a pool."""

    driver: str
    pool: str
    counter_set: str
    counter: str


SELECTOR_LENGTH = 10 * 2**10
"""How long a selector may be (resource.k8s.io CELSelectorExpressionMaxLength)."""

Target = str | NodeSelector | None
"""Who reaches a device: the node of that name, the nodes that match, or all (None)."""


class DeviceSelectorError(Exception):
    """A device selector that does not parse, or fails on a device: the whole cycle fails."""

    def __init__(self, expression: str, problem: str, device: str = "") -> None:
        super().__init__(problem)
        self.expression = expression
        self.device = device
        """The device that it failed on; none where the expression itself is wrong."""


class ConversionError(DeviceSelectorError):
    """A device that no selector can be asked about: an amount or a version of it does not parse."""

    def __init__(self, expression: str, cause: CELError, device: str) -> None:
        super().__init__(expression, f"CEL runtime error: {cause}", device)
        self.cause = cause


class Device:
    """One device: what it is, who reaches it, and what its use takes out of shared counters."""

    __slots__ = ("_matches", "_variable", "answers_kept", "capacity", "consumes", "id", "spec", "target")

    def __init__(self, device_id: DeviceId, spec: DeviceSpec, target: Target) -> None:
        self.id = device_id
        self.spec = spec
        self.target = target
        self.consumes: dict[CounterId, int] = {
            CounterId(device_id.driver, device_id.pool, part.counter_set, name): nanos(counter.value)
            for part in spec.consumes_counters
            for name, counter in part.counters.items()
        }
        self.capacity = {name: nanos(amount.value) for name, amount in spec.capacity.items()}
        self._variable: dict[str, Any] | None = None
        self._matches: dict[str, bool] = {}
        self.answers_kept = ANSWERS_KEPT

    def matches(self, expression: str, look: Look = look_at_nothing) -> bool:
        """Whether the expression holds for the device; an evaluation that `look` ends is not remembered.

        Raises: SelectorError, and what `look` raises.
        """
        known = self._matches.get(expression)
        if known is None:
            known = self._evaluate(expression, look)
            if len(self._matches) >= self.answers_kept:
                self._matches.clear()
            self._matches[expression] = known
        return known

    def matches_all(self, expressions: Iterable[str], look: Look = look_at_nothing) -> bool:
        """Whether every expression holds for the device; what follows one that does not is not looked at.

        Raises: SelectorError, and what `look` raises.
        """
        return all(self.matches(expression, look) for expression in expressions)

    def _evaluate(self, expression: str, look: Look) -> bool:
        if self._variable is None:
            try:
                self._variable = device_variable(self.id.driver, self.spec)
            except CELError as error:
                raise ConversionError(expression, error, "/".join(self.id)) from error
        try:
            answer = program(expression, max_length=SELECTOR_LENGTH)({"device": self._variable}, look)
        except SyntaxProblemError as error:
            raise DeviceSelectorError(expression, f"CEL compile error: {error}") from error
        except CELError as error:
            raise DeviceSelectorError(expression, f"CEL runtime error: {error}", "/".join(self.id)) from error
        if answer is True or answer is False:
            return bool(answer)
        raise DeviceSelectorError(expression, "CEL compile error: must evaluate to bool")


DevicesOf = Callable[[ResourceSlice], list[Device]]


class DevicePool:
    """The devices of a pool's newest generation.

    `problem` says why nothing may be allocated from it: slices are missing, or contradict each other.
    """

    __slots__ = ("counters", "devices", "driver", "invalid", "name", "problem")

    def __init__(
        self, driver: str, name: str, slices: Sequence[ResourceSlice], devices_of: DevicesOf
    ) -> None:
        self.driver = driver
        self.name = name
        self.devices = [device for part in slices for device in devices_of(part)]
        self.counters: dict[CounterId, int] = {
            CounterId(driver, name, counter_set.name, counter): nanos(amount.value)
            for part in slices
            for counter_set in part.spec.shared_counters
            for counter, amount in counter_set.counters.items()
        }
        incomplete = len(slices) != slices[0].spec.pool.resource_slice_count
        self.invalid = not incomplete and self._contradicts_itself(slices)
        self.problem = "is currently being updated" if incomplete else ""
        if self.invalid:
            self.problem = "is currently invalid"

    def _contradicts_itself(self, slices: Sequence[ResourceSlice]) -> bool:
        sets = [s.name for part in slices for s in part.spec.shared_counters]
        names = {device.id for device in self.devices}
        return (
            len(names) != len(self.devices)
            or len(set(sets)) != len(sets)
            or any(counter not in self.counters for device in self.devices for counter in device.consumes)
        )

    @property
    def waits_to_bind(self) -> bool:
        """Whether some device has conditions that binding waits for."""
        return any(device.spec.binding_conditions for device in self.devices)

    @property
    def full_name(self) -> str:
        """The pool as `driver/name`."""
        return f"{self.driver}/{self.name}"


def _devices(part: ResourceSlice) -> list[Device]:
    driver, pool = part.spec.driver, part.spec.pool.name
    return [
        Device(DeviceId(driver, pool, device.name), device, _target(part, device))
        for device in part.spec.devices
    ]


def _target(part: ResourceSlice, device: DeviceSpec) -> Target:
    place = device if part.spec.per_device_node_selection else part.spec
    if place.node_name:
        return place.node_name
    if place.node_selector is not None:
        return place.node_selector
    # What names no nodes at all is reached by none; the empty selector says so.
    return None if place.all_nodes else NodeSelector()


class ReachableDevices:
    """The devices that some nodes reach, pool by pool."""

    def __init__(self, pools: Iterable[tuple[DevicePool, list[Device]]], answers_kept: int) -> None:
        self._answers_kept = answers_kept
        self.pools = sorted(pools, key=lambda seen: seen[0].waits_to_bind)
        self.has_invalid = any(pool.invalid for pool, _ in self.pools)
        self.usable = [device for pool, devices in self.pools if not pool.problem for device in devices]
        """The devices of pools without a problem, in the order they are tried."""
        self._matching: dict[tuple[str, ...], list[Device]] = {}

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

    Devices of slices that stayed as they were are taken over from the inventory `before`.
    """

    def __init__(self, slices: Iterable[ResourceSlice], before: "Inventory | None" = None) -> None:
        self.made: dict[str, tuple[ResourceSlice, list[Device]]] = {}
        """The devices of each slice that counts, by its name."""
        earlier = before.made if before is not None else {}

        def devices_of(part: ResourceSlice) -> list[Device]:
            known = earlier.get(part.name)
            if known is None or known[0] is not part:
                known = part, _devices(part)
            self.made[part.name] = known
            return known[1]

        self.pools = [
            DevicePool(driver, name, parts, devices_of)
            for (driver, name), parts in sorted(_newest(slices).items())
        ]
        self.counters = {name: amount for pool in self.pools for name, amount in pool.counters.items()}
        self.devices = {device.id: device for pool in self.pools for device in pool.devices}
        self._answers_kept = _share(len(self.devices))
        for device in self.devices.values():
            device.answers_kept = self._answers_kept
        targets = dict.fromkeys(device.target for device in self.devices.values())
        self._names = frozenset(t for t in targets if isinstance(t, str))
        self._selectors = [t for t in targets if isinstance(t, NodeSelector)]
        self._keys: dict[tuple[str, bytes], int] = {}
        self._views: list[ReachableDevices] = []
        self._grouped_nodes: Snapshot | None = None
        self._grouped_at = -1
        self._groups: Ints = np.zeros(0, dtype=np.int64)
        self._by_target: dict[Target, list[tuple[int, int]]] = {}
        for p, pool in enumerate(self.pools):
            for d, device in enumerate(pool.devices):
                self._by_target.setdefault(device.target, []).append((p, d))

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
        return self._views[group]

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
        found = [
            self._group(name if name in self._names else "", keys[number])
            for name, number in zip(nodes.names, rows, strict=True)
        ]
        return np.array(found, dtype=np.int64)

    def _group(self, name: str, pattern: bytes) -> int:
        number = self._keys.get((name, pattern))
        if number is None:
            number = self._keys[name, pattern] = len(self._views)
            self._views.append(self._make_view(name, pattern))
        return number

    def _make_view(self, name: str, pattern: bytes) -> ReachableDevices:
        targets: list[Target] = [None]
        targets += [s for s, reached in zip(self._selectors, pattern, strict=True) if reached]
        if name:
            targets.append(name)
        places = sorted(place for target in targets for place in self._by_target.get(target, ()))
        pools: dict[int, list[Device]] = {}
        for p, d in places:
            pools.setdefault(p, []).append(self.pools[p].devices[d])
        return ReachableDevices(
            ((self.pools[p], devices) for p, devices in pools.items()), self._answers_kept
        )


def _share(devices: int) -> int:
    """How many selectors' answers are remembered for each of so many devices."""
    return max(LEAST_KEPT, min(ANSWERS_KEPT, MAX_ANSWERS // max(devices, 1)))


def _newest(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], list[ResourceSlice]]:
    """The slices of each pool's newest generation, sorted by name."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for part in sorted(slices, key=lambda s: s.name):
        parts = pools.setdefault((part.spec.driver, part.spec.pool.name), [])
        if parts and parts[0].spec.pool.generation > part.spec.pool.generation:
            continue
        if parts and parts[0].spec.pool.generation < part.spec.pool.generation:
            parts.clear()
        parts.append(part)
    return pools
