"""Resource slices as they are with the taints that administrators' rules add to their devices.

    slices, DeviceTaintRules --as watched--> SliceTracker --> slices whose devices carry both kinds of taints

Without rules, and with the gate DRADeviceTaintRules off, these are the slices themselves.

Source: dynamic-resource-allocation resourceslice/tracker/tracker.go; resource.k8s.io/v1beta2 DeviceTaintRule
(Kubernetes v1.36).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from berth.framework.mirrors.store import Store
from berth.objects.devices.devices import DeviceSpec, DeviceTaintRule, DeviceTaintSelector, ResourceSlice

NO_RULES: Mapping[str, DeviceTaintRule] = {}


class _Made(NamedTuple):
    rules_generation: int
    tainted: ResourceSlice


class SliceTracker:
    """The slices; one for all profiles. `generation` counts what changed of them and of the rules.

    Cost: a slice is looked at once for each state of the rules, and is the same object for as long as nothing
    of it changed.
    """

    __slots__ = ("_by_device", "_made", "_rules", "_slices")

    def __init__(self, slices: Store[ResourceSlice], rules: Store[DeviceTaintRule]) -> None:
        self._slices = slices
        self._rules = rules
        self._by_device = RulesByDevice(rules)
        self._made: dict[str, _Made] = {}
        slices.followers.append(self._forget)

    @property
    def generation(self) -> int:
        """Another number whenever a slice may be another one than before."""
        return self._slices.generation + self._rules.generation

    def __iter__(self) -> Iterator[ResourceSlice]:
        return (self._tainted(part) for part in self._slices)

    def _tainted(self, part: ResourceSlice) -> ResourceSlice:
        generation = self._rules.generation
        if not generation:
            return part
        made = self._made.get(part.key)
        if made is None or made.rules_generation != generation:
            fresh = with_taints(part, self._by_device)
            kept = made.tainted if made is not None and made.tainted == fresh else fresh
            made = self._made[part.key] = _Made(generation, kept)
        return made.tainted

    def _forget(self, key: str) -> None:
        self._made.pop(key, None)


class RulesByDevice:
    """The rules, to be found by the device that they name; `None` has those that name none."""

    __slots__ = ("_came", "_found", "_number", "_rules")

    def __init__(self, rules: Store[DeviceTaintRule]) -> None:
        self._rules = rules
        self._found: dict[str | None, dict[str, DeviceTaintRule]] = {}
        self._came: dict[str, tuple[int, str | None]] = {}
        self._number = 0
        for rule in rules:
            self._follow(rule.key)
        rules.followers.append(self._follow)

    def of(self, part: ResourceSlice, device: str) -> list[DeviceTaintRule]:
        """The rules that mean that device of the slice, in the order in which they came."""
        filed = [*self._found.get(None, NO_RULES).values(), *self._found.get(device, NO_RULES).values()]
        meant = [rule for rule in filed if _means(rule.spec.device_selector, part, device)]
        return sorted(meant, key=lambda rule: self._came[rule.key][0])

    def _follow(self, key: str) -> None:
        rule = self._rules.by_key(key)
        number, filed_under = self._came.pop(key, (0, None))
        if number:
            del self._found[filed_under][key]
            if not self._found[filed_under]:
                del self._found[filed_under]
        if rule is None:
            return
        self._number += 1
        selector = rule.spec.device_selector
        device = None if selector is None else selector.device
        self._came[key] = number or self._number, device
        self._found.setdefault(device, {})[key] = rule


def with_taints(part: ResourceSlice, rules: RulesByDevice) -> ResourceSlice:
    """The slice with the rules' taints after its own; the very same one where no rule means it."""
    devices = tuple(_device(part, device, rules) for device in part.spec.devices)
    if all(new is old for new, old in zip(devices, part.spec.devices, strict=True)):
        return part
    return msgspec.structs.replace(part, spec=msgspec.structs.replace(part.spec, devices=devices))


def _device(part: ResourceSlice, device: DeviceSpec, rules: RulesByDevice) -> DeviceSpec:
    added = tuple(rule.spec.taint for rule in rules.of(part, device.name))
    return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device


def _means(selector: DeviceTaintSelector | None, part: ResourceSlice, device: str) -> bool:
    return (
        selector is not None
        and selector.driver in (None, part.spec.driver)
        and selector.pool in (None, part.spec.pool.name)
        and selector.device in (None, device)
    )
