"""What the queue refuses.

QueueError
├── AlreadyQueuedError       a pod came back that is in the queue already: log it, the queue has the newer one
├── GroupAlreadyQueuedError  an attempt at a group ended that is in the queue already: log it
└── EventRegistrationError   plugins could not say which events they wait for: exit
"""


class QueueError(Exception):
    """A call that the queue refuses."""


class AlreadyQueuedError(QueueError):
    """The returned pod is in one of the queue's places."""

    def __init__(self, pod_key: str, place: str) -> None:
        super().__init__(f"Pod {pod_key} is already present in {place} queue")


class GroupAlreadyQueuedError(QueueError):
    """The group whose attempt ended is in one of the queue's places."""

    def __init__(self, group: str, place: str) -> None:
        queue = place if place == "unschedulable" else f"the {place}"
        super().__init__(f"pod group {group} is already present in {queue} queue")


class EventRegistrationError(QueueError):
    """All failures of a profile's plugins to register their events, one a line."""
