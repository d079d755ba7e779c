"""What a claim asks for, made ready for the search: alternatives, selectors, constraints.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go PreFilter (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from berth.framework.status import PluginError
from berth.objects.devices.devices import DeviceClass
from berth.objects.devices.resource_claims import (
    ALL,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from berth.objects.node import Amount
from berth.objects.taint import Toleration

ClassOf = Callable[[str], DeviceClass | None]


class ClassMissingError(Exception):
    """A request that can't be met while things are as they are; the text is upstream's."""


class Ask(msgspec.Struct, frozen=True):
    """One alternative of one request."""

    request: str
    name: str
    """`request`, or `request/alternative`."""
    device_class: DeviceClass
    selectors: tuple[str, ...]
    every: bool
    count: int
    admin_access: bool
    tolerations: tuple[Toleration, ...]
    capacity: dict[str, Amount]
    derived: Mapping[str, str]
    """The expressions of attributes that the request derives, by name."""
    position: int | None = None
    """The place among the alternatives, None where there are none."""

    @property
    def own_name(self) -> str:
        """The name without that of the request that it is an alternative of."""
        return self.name.rpartition("/")[2]

    def source_of(self, expression: str, claim: ResourceClaim) -> str:
        """Where that selector stands, as upstream names it: those of the class come first."""
        if expression not in self.selectors:
            name = next(name for name, derived in self.derived.items() if derived == expression)
            return f"claim {claim.key}: derived attribute {name}"
        place, of_class = self.selectors.index(expression), len(self.device_class.spec.selectors)
        if place < of_class:
            return f"class {self.device_class.name}: selector #{place}"
        return f"claim {claim.key}: selector #{place - of_class}"


class ClaimAsk(msgspec.Struct, frozen=True):
    """A claim to allocate: for each of its requests the alternatives, best first."""

    claim: ResourceClaim
    requests: tuple[tuple[Ask, ...], ...]
    constraints: tuple[DeviceConstraint, ...] = ()


def claim_ask(claim: ResourceClaim, class_of: ClassOf) -> ClaimAsk:
    """The claim's requests, each with its class.

    Raises: ClassMissingError; PluginError where a request names no class.
    """
    requests = tuple(tuple(_asks(claim, request, class_of)) for request in claim.spec.devices.requests)
    return ClaimAsk(claim, requests, claim.spec.devices.constraints)


def _asks(claim: ResourceClaim, request: DeviceRequest, class_of: ClassOf) -> Iterator[Ask]:
    if request.exactly is not None:
        yield _ask(request.name, request.name, request.exactly, class_of, None)
    elif request.first_available:
        for position, sub in enumerate(request.first_available):
            yield _ask(request.name, f"{request.name}/{sub.name}", sub, class_of, position)
    else:
        raise ClassMissingError(f"resource claim {claim.key}, request {request.name}: unknown request type")


def _ask(
    request: str,
    name: str,
    wanted: ExactDeviceRequest | DeviceSubRequest,
    class_of: ClassOf,
    position: int | None,
) -> Ask:
    if not wanted.device_class_name:
        raise PluginError(f"request {name}: unsupported request type")
    device_class = class_of(wanted.device_class_name)
    if device_class is None:
        raise ClassMissingError(f"request {name}: device class {wanted.device_class_name} does not exist")
    return Ask(
        request,
        name,
        device_class,
        (*_expressions(device_class.spec.selectors), *_expressions(wanted.selectors)),
        wanted.allocation_mode == ALL,
        wanted.count or 1,
        isinstance(wanted, ExactDeviceRequest) and wanted.admin_access,
        wanted.tolerations,
        wanted.capacity.requests if wanted.capacity else {},
        {each.name: each.expression for each in wanted.derived_attributes},
        position,
    )


def _expressions(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)
