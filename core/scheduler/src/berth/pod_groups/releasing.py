"""What is freed for a group that was turned down: what keeps its pods to a node, and no other pod uses.

From Kubernetes 1.37 on PostFilter is no part of an attempt at a pod of a group. Devices that were allocated
for a binding that failed would hold the group's pods to their node for good.
"""

import msgspec

from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.attempts.diagnosis import FitError
from berth.framework.interface import GroupReleasePlugin
from berth.framework.runtime import Framework
from berth.pod_groups.group_result import GroupResult


class Released(msgspec.Struct):
    """Whether anything was freed, and what there is to say of it: what was, and what could not be."""

    freed: bool = False
    said: list[str] = msgspec.field(default_factory=list)


async def release_for(framework: Framework, result: GroupResult) -> Released:
    """Free what the pods hold that fit nowhere."""
    released = Released()
    found = (p for p in framework.plugins.post_filter if isinstance(p, GroupReleasePlugin))
    for plugin in found:
        for one in result.members.values():
            error = one.status.error
            if isinstance(error, FitError):
                try:
                    text = await plugin.release(one.attempt.state, one.attempt.pod, error.diagnosis)
                except OverBudgetError:
                    raise
                except Exception as broken:  # noqa: BLE001 - said of the group, which is tried again
                    released.said.append(f"{plugin.name}: {broken}")
                    break
                released.freed |= bool(text)
                released.said.extend([text] if text else [])
    return released
