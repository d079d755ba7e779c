"""What hint functions ask of the objects of an event.

Source: pkg/scheduler/framework/plugins, the functions that EventsToRegister names (Kubernetes v1.36).
"""

from collections.abc import Callable
from typing import Any, TypeVar

from berth.framework.cluster_event import ConcernedPods, QueueingHint, QueueingHintFn
from berth.objects.pods.pod import Pod

T = TypeVar("T")


class UnexpectedObjectError(TypeError):
    """An event about another kind of object than the hint was registered for."""


Concerned = Callable[[Any, Any], ConcernedPods | None]


class NarrowHint:
    """A hint function that knows which pods an event may help: only these are asked about.

    Thousands of pods may wait for objects of their own, each of which comes, and changes, for itself.
    """

    __slots__ = ("_ask", "concerned")

    def __init__(self, ask: QueueingHintFn, concerned: Concerned) -> None:
        self._ask = ask
        self.concerned = concerned

    def __call__(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Whether the event may help the pod."""
        return self._ask(pod, old, new)


def expected(kind: type[T], obj: Any) -> T:
    """The object, which has to be of that kind.

    Raises: UnexpectedObjectError.
    """
    if not isinstance(obj, kind):
        raise UnexpectedObjectError(f"expected a {kind.__name__}, got a {type(obj).__name__}")
    return obj


def maybe(kind: type[T], obj: Any) -> T | None:
    """The object if there is one.

    Raises: UnexpectedObjectError.
    """
    return None if obj is None else expected(kind, obj)


def queue_if(condition: object) -> QueueingHint:
    """QUEUE where the condition holds."""
    return QueueingHint.QUEUE if condition else QueueingHint.SKIP


def is_own(pod: Pod, other: Pod) -> bool:
    """Whether both are the same pod, maybe at different times."""
    return pod.uid == other.uid


def unplaced(pod: Pod) -> bool:
    """Whether the pod neither is on a node nor is nominated to one."""
    return not pod.node_name and not pod.nominated_node_name


def of_own_pod(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the event is about the waiting pod itself."""
    del old
    return queue_if(is_own(pod, expected(Pod, new)))
