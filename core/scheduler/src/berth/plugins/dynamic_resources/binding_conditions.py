"""Conditions that drivers have to report before a pod with their devices is bound.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go isClaimReadyForBinding,
isPodReadyForBinding (Kubernetes v1.36).
"""

from berth.framework.status import PluginError
from berth.objects.devices.resource_claims import (
    AllocatedDeviceStatus,
    DeviceCondition,
    DeviceResult,
    ResourceClaim,
)


class DeviceBindingError(Exception):
    """A driver reports that it cannot provide a device; the text is upstream's."""


class DeviceTimeoutError(PluginError):
    """The devices took longer than a pod may wait for them."""


def ready(claim: ResourceClaim) -> bool:
    """Whether all of the claim's devices have what binding waits for.

    Raises: DeviceBindingError where one reports a failure.
    """
    every = True
    for result, conditions in _reported(claim):
        for condition in conditions:
            if condition.type in result.binding_failure_conditions and condition.status == "True":
                raise DeviceBindingError(
                    f"device binding failed: claim={claim.key}, reason={condition.reason}, "
                    f'message="{condition.message}"'
                )
        met = {condition.type for condition in conditions if condition.status == "True"}
        every = every and met.issuperset(result.binding_conditions)
    return every


def awaited_drivers(claim: ResourceClaim) -> set[str]:
    """The drivers whose devices have conditions that binding waits for."""
    return {result.driver for result, _ in _reported(claim) if result.binding_conditions}


def given_up(claim: ResourceClaim, age_seconds: float | None, timeout_seconds: float) -> bool:
    """Whether the claim's devices failed, or took too long: another node is to be tried."""
    try:
        if ready(claim):
            return False
    except DeviceBindingError:
        return True
    return age_seconds is not None and age_seconds > timeout_seconds


def _reported(claim: ResourceClaim) -> list[tuple[DeviceResult, tuple[DeviceCondition, ...]]]:
    results = claim.allocation.devices.results if claim.allocation else ()
    statuses = {_device(status): status.conditions for status in claim.status.devices}
    return [(result, statuses.get(_device(result), ())) for result in results]


def _device(of: DeviceResult | AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return of.driver, of.pool, of.device, of.share_id
