"""One write to the API server on its way: what it says, what it makes of another one, and how it ended.

Source: pkg/scheduler/framework/api_calls, backend/api_dispatcher/call_queue.go (Kubernetes v1.36); KEP-5229.
"""

from collections.abc import Mapping
from contextvars import Context, copy_context
from enum import StrEnum
from typing import Protocol

import msgspec

from berth.framework.handle import ApiWriter
from berth.framework.pod_conditions import status_changes
from berth.framework.ports.background import Background
from berth.objects.pods.pod import Pod, PodCondition


class Settling(Protocol):
    """What is to know how a call ended."""

    def set(self, error: Exception | None) -> bool:
        """Deliver what was raised, or None; False where that was done before."""


class CallType(StrEnum):
    """What is written; later ones are more relevant."""

    STATUS_PATCH = "pod_status_patch"
    BINDING = "pod_binding"

    @property
    def relevance(self) -> int:
        """A call gives way to one of higher relevance."""
        return 2 if self is CallType.BINDING else 1


class NotNeeded(Exception):  # noqa: N818 - nothing went wrong: another call says it, or it is not needed any more
    """The call was not made, and need not be."""


SKIPPED_FOR_RELEVANCE = "a more relevant call is already enqueued for this object: call skipped"
OVERWRITTEN_BY_RELEVANCE = "a more relevant call was enqueued for this object: call overwritten"
OVERWRITTEN_BY_SAME = "a call of the same type was enqueued for this object: call overwritten"
WITHOUT_EFFECT = "call does not need to be executed because it has no effect: call skipped"
WITHOUT_EFFECT_ANY_MORE = (
    "call does not need to be executed because after sync it has no effect: call skipped"
)


class ApiCall(msgspec.Struct, eq=False):
    """A binding, or a status patch of a condition, a nomination or both.

    `pod` is the pod with the status that the call is compared to. `outcome` gets None, or what was raised.
    """

    type: CallType
    pod: Pod
    outcome: Settling
    condition: PodCondition | None = None
    nominated_node_name: str | None = None
    node_name: str = ""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    begun: bool = False
    context: Context = msgspec.field(default_factory=copy_context)
    """Of the work that asks for it: the call is made with the rights that this work has."""

    @property
    def without_effect(self) -> bool:
        """Whether the API server has all of this already."""
        if self.type is CallType.BINDING:
            return False
        return not status_changes(self.pod, self.condition, self.nominated_node_name)

    def absorb(self, older: "ApiCall") -> None:
        """Say what an older call of the same type would have said, too, unless this one says otherwise."""
        if self.condition is None:
            self.condition = older.condition
        if self.nominated_node_name is None:
            self.nominated_node_name = older.nominated_node_name

    async def send(self, writer: ApiWriter, background: Background) -> None:
        """Write it. Raises: what the writer raises, or says of the binding."""
        if self.type is CallType.STATUS_PATCH:
            await writer.patch_pod_status(self.pod, self.condition, self.nominated_node_name)
            return
        bound = background.outcome()
        writer.bind(self.pod, self.node_name, bound.set, self.annotations)
        error = await bound
        if error is not None:
            raise error
