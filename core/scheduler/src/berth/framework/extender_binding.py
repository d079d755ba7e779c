"""Binding by an extender instead of by bind plugins.

Source: pkg/scheduler/schedule_one.go extendersBinding (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable, Sequence

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.extender import Extender
from berth.framework.status import SUCCESS, Status, failed
from berth.objects.pods.pod import Pod

log = logging.getLogger(__name__)


async def run_extender_bind(
    extenders: Sequence[Extender], state: CycleState, pod: Pod, node_name: str
) -> Status | None:
    """Let the first extender bind that cares for the pod; None where it is left to bind plugins."""
    for extender in interested(extenders, pod, lambda extender: extender.binds):
        try:
            await extender.bind(state, pod, node_name)
        except Exception as error:  # noqa: BLE001 - whatever a webhook does costs this pod its attempt at most
            if not extender.ignorable:
                return failed(error)
            log.warning("extender passed over extender=%s err=%s", extender.name, error)
        else:
            return SUCCESS
    return None


def interested(extenders: Sequence[Extender], pod: Pod, able: Callable[[Extender], bool]) -> list[Extender]:
    """The extenders that can do it and care for the pod."""
    return [extender for extender in extenders if able(extender) and extender.interested(pod)]
