"""From the devices that the search chose to the allocation that is written into the claim.

Source: dynamic-resource-allocation structured/internal/stable/allocator_stable.go Allocate (Kubernetes
v1.36).
"""

import random
import uuid
from collections.abc import Iterable, Iterator, Sequence

from berth.objects.devices.resource_claims import (
    AllocatedConfiguration,
    Allocation,
    DeviceAllocation,
    DeviceConfiguration,
    DeviceResult,
    ResourceClaim,
)
from berth.objects.label_selector import Requirement
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.plugins.dynamic_resources.asking import Ask
from berth.plugins.dynamic_resources.devices import Device
from berth.plugins.dynamic_resources.picking import Pick
from berth.plugins.dynamic_resources.supply import Features
from berth.snapshot.node_matching import NAME_FIELD

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def allocation(
    claim: ResourceClaim, picks: Sequence[Pick], node_name: str, features: Features, chance: random.Random
) -> Allocation:
    """The claim's allocation with these devices, for use from that node."""
    return Allocation(
        DeviceAllocation(
            tuple(_result(pick, features, chance) for pick in picks),
            tuple(_configuration(claim, picks, features)),
        ),
        _node_selector([pick.device for pick in picks], node_name),
    )


def _result(pick: Pick, features: Features, chance: random.Random) -> DeviceResult:
    device, shared = pick.device, pick.taken is not None
    conditions = features.binding_conditions
    return DeviceResult(
        request=pick.ask.name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if pick.ask.admin_access else None,
        tolerations=pick.ask.tolerations if features.taints else (),
        binding_conditions=device.spec.binding_conditions if conditions else (),
        binding_failure_conditions=device.spec.binding_failure_conditions if conditions else (),
        share_id=str(uuid.UUID(int=chance.getrandbits(128), version=4)) if shared else None,
        consumed_capacity=pick.taken.amounts if pick.taken is not None else {},
        compatibility_groups=_groups(device) if features.compatibility_groups else {},
    )


def _groups(device: Device) -> dict[str, tuple[str, ...]]:
    return {
        part.counter_set: part.compatibility_groups
        for part in device.spec.consumes_counters
        if part.compatibility_groups
    }


def _configuration(
    claim: ResourceClaim, picks: Sequence[Pick], features: Features
) -> Iterator[AllocatedConfiguration]:
    asks = {pick.ask.name: pick.ask for pick in picks}
    for name, ask in asks.items():
        for config in ask.device_class.spec.config:
            yield AllocatedConfiguration(FROM_CLASS, (name,), config.opaque)
    names = {name for ask in asks.values() for name in (ask.request, ask.name)}
    for config in claim.spec.devices.config:
        if _concerns(config, names):
            unnamed = features.rules.configures_all_without_names and _names_all(config, claim, asks.values())
            yield AllocatedConfiguration(FROM_CLAIM, () if unnamed else config.requests, config.opaque)


def _names_all(config: DeviceConfiguration, claim: ResourceClaim, asks: Iterable[Ask]) -> bool:
    """Whether every request is named, by itself or by the alternative that was taken."""
    taken = {ask.request: ask.name for ask in asks}
    names = ((each.name, taken.get(each.name, each.name)) for each in claim.spec.devices.requests)
    return all(not set(config.requests).isdisjoint(either) for either in names)


def _concerns(config: DeviceConfiguration, names: set[str]) -> bool:
    return not config.requests or any(name in names for name in config.requests)


def _node_selector(devices: Iterable[Device], node_name: str) -> NodeSelector | None:
    """The one node where some device is local to it, else all that the devices' selectors ask together."""
    found: dict[str, dict[Requirement, None]] = {"labels": {}, "fields": {}}
    for device in devices:
        if isinstance(device.target, str) or device.spec.binds_to_node:
            named = Requirement(NAME_FIELD, "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(named,)),))
        for term in device.target.node_selector_terms if device.target else ():
            found["labels"].update(dict.fromkeys(term.match_expressions))
            found["fields"].update(dict.fromkeys(term.match_fields))
    if not found["labels"] and not found["fields"]:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(found["labels"]), tuple(found["fields"])),))
