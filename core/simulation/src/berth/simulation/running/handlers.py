"""The event handlers of a scheduler's core, by the kind whose events they take."""

from typing import Any

from berth.event_handlers.handler import ResourceHandler
from berth.framework.mirrors.listers import Store
from berth.objects.api_object import TypedObject
from berth.objects.devices.devices import DeviceTaintRule
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.watching.watches import DEVICE_TAINT_RULES, LOOKED_UP


def handlers_of(core: Scheduler) -> dict[type[TypedObject], ResourceHandler]:
    """A handler for each kind that this core's features read."""
    found: dict[type[TypedObject], ResourceHandler] = {Node: core.node_handler, Pod: core.pod_handler}
    for watched in LOOKED_UP:
        if not watched.gate or core.feature_enabled(watched.gate):
            store: Store[Any] = watched.store(core.listers)
            found[watched.kind] = core.resource_handler(watched.events, store)
    if core.feature_enabled(DEVICE_TAINT_RULES):
        found[DeviceTaintRule] = core.device_taint_rule_handler
    return found
