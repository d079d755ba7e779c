"""Devices that drivers publish, and the expressions that select them.

Devices that are published alike are of one kind, and an expression is evaluated once for each kind: names,
pools and nodes are no part of what it sees.

Source: dynamic-resource-allocation cel/compile.go (Kubernetes v1.36).
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from berth.cel import CELError, Look, SyntaxProblemError, look_at_nothing, program
from berth.objects.devices.devices import DeviceSpec
from berth.objects.node_selector import NodeSelector
from berth.objects.quantity import nanos
from berth.plugins.dynamic_resources.device_values import Values, derived_values, device_variable

ANSWERS_KEPT = 1024
"""For that many different selectors it is remembered which kinds match: claims come with ever new ones.

One claim has at most 32 requests of 32 selectors, each looked at several times in a search.
"""
SELECTOR_LENGTH = 10 * 2**10
"""How long a selector may be (resource.k8s.io CELSelectorExpressionMaxLength)."""


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


Groups = frozenset[tuple[str, frozenset[str]]]
"""The compatibility groups of a device by the counter sets that it consumes."""
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


class Derived(NamedTuple):
    """The values of a derived attribute, and whether they came as a list."""

    values: Values
    is_list: bool


def _is_small(values: Values) -> bool:
    """Whether they take little more memory than an attribute that a driver may publish."""
    return len(values) <= VALUES_KEPT and all(len(str(value)) <= VALUE_KEPT for _, value in values)


VALUES_KEPT, VALUE_KEPT = 64, 64
"""Of more derived values, or of longer ones, nothing is remembered."""
NO_ATTRIBUTE = "CEL compile error: must evaluate to string, int, bool, semver or a list of these"


class DeviceKind:
    """What all devices have in common that one driver publishes alike."""

    __slots__ = (
        "__weakref__",
        "_derived",
        "_driver",
        "_matches",
        "_spec",
        "_variable",
        "answers_kept",
        "capacity",
        "groups",
    )

    def __init__(self, driver: str, spec: DeviceSpec) -> None:
        self._driver = driver
        self._spec = spec
        self.capacity = {name: nanos(amount.value) for name, amount in spec.capacity.items()}
        self.groups: Groups = frozenset(
            (part.counter_set, frozenset(part.compatibility_groups)) for part in spec.consumes_counters
        )
        self._variable: dict[str, Any] | None = None
        self._matches: dict[str, bool] = {}
        self._derived: dict[str, Derived] = {}
        self.answers_kept = ANSWERS_KEPT

    def matches(self, expression: str, device: DeviceId, look: Look) -> bool:
        """Whether the expression holds; errors name the device, which is of this kind.

        Raises: DeviceSelectorError, and what `look` raises.
        """
        known = self._matches.get(expression)
        if known is None:
            known = self._evaluate(expression, device, look)
            if len(self._matches) >= self.answers_kept:
                self._matches.clear()
            self._matches[expression] = known
        return known

    def derived(self, expression: str, device: DeviceId, look: Look) -> Derived:
        """What the expression makes of a device of this kind, as the values of an attribute.

        Raises: DeviceSelectorError, and what `look` raises.
        """
        known = self._derived.get(expression)
        if known is None:
            answer = self._answer(expression, device, look)
            values = derived_values(answer)
            if values is None:
                raise DeviceSelectorError(expression, NO_ATTRIBUTE, "/".join(device))
            known = Derived(values, is_list=isinstance(answer, list | tuple))
            if len(self._derived) >= self.answers_kept:
                self._derived.clear()
            if _is_small(values):
                self._derived[expression] = known
        return known

    def _evaluate(self, expression: str, device: DeviceId, look: Look) -> bool:
        answer = self._answer(expression, device, look)
        if answer is True or answer is False:
            return bool(answer)
        raise DeviceSelectorError(expression, "CEL compile error: must evaluate to bool")

    def _answer(self, expression: str, device: DeviceId, look: Look) -> Any:
        if self._variable is None:
            try:
                self._variable = device_variable(self._driver, self._spec)
            except CELError as error:
                raise ConversionError(expression, error, "/".join(device)) from error
        try:
            return program(expression, max_length=SELECTOR_LENGTH)({"device": self._variable}, look)
        except SyntaxProblemError as error:
            raise DeviceSelectorError(expression, f"CEL compile error: {error}") from error
        except CELError as error:
            raise DeviceSelectorError(expression, f"CEL runtime error: {error}", "/".join(device)) from error


def kind_key(driver: str, spec: DeviceSpec) -> Hashable:
    """Equal for devices of one kind."""
    nameless = msgspec.structs.replace(spec, name="", node_name=None, node_selector=None, all_nodes=False)
    return driver, msgspec.msgpack.encode(nameless)


NOTHING: Mapping[CounterId, int] = {}
"""What most devices take out of counters: one object for all of them."""


def agree(one: Groups, others: Iterable[tuple[str, frozenset[str]]]) -> bool:
    """Whether devices may be in use together: of each counter set both have no groups, or some in common."""
    of_set = dict(one)
    return all(
        name not in of_set or bool(of_set[name] & groups) or not (of_set[name] or groups)
        for name, groups in others
    )


class Device:
    """One device: what it is, who reaches it, and what its use takes out of shared counters."""

    __slots__ = ("consumes", "id", "kind", "spec", "target")

    def __init__(
        self, device_id: DeviceId, spec: DeviceSpec, target: Target, kind: DeviceKind | None = None
    ) -> None:
        self.id = device_id
        self.spec = spec
        self.target = target
        self.kind = kind or DeviceKind(device_id.driver, spec)
        self.consumes: Mapping[CounterId, int] = NOTHING
        if spec.consumes_counters:
            self.consumes = {
                CounterId(device_id.driver, device_id.pool, part.counter_set, name): nanos(counter.value)
                for part in spec.consumes_counters
                for name, counter in part.counters.items()
            }

    @property
    def groups(self) -> Groups:
        """Its compatibility groups."""
        return self.kind.groups

    @property
    def capacity(self) -> dict[str, int]:
        """How much it has, by name. Units: nanos."""
        return self.kind.capacity

    def matches(self, expression: str, look: Look = look_at_nothing) -> bool:
        """Whether the expression holds for the device; an evaluation that `look` ends is not remembered.

        Raises: DeviceSelectorError, and what `look` raises.
        """
        return self.kind.matches(expression, self.id, look)

    def matches_all(self, expressions: Iterable[str], look: Look = look_at_nothing) -> bool:
        """Whether every expression holds for the device; what follows one that does not is not looked at.

        Raises: DeviceSelectorError, and what `look` raises.
        """
        return all(self.matches(expression, look) for expression in expressions)

    def derives(self, expression: str, look: Look = look_at_nothing) -> bool:
        """Whether an attribute can be made of the device by the expression. Raises: what `look` raises."""
        try:
            self.kind.derived(expression, self.id, look)
        except DeviceSelectorError:
            return False
        return True
