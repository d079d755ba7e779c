"""What the queue refuses.

QueueError
├── AlreadyQueuedError       a pod came back that is in the queue already: log it, the queue has the newer one
└── EventRegistrationError   plugins could not say which events they wait for: exit
"""


class QueueError(Exception):
    """A call that the queue refuses."""


class AlreadyQueuedError(QueueError):
    """The returned pod is in one of the queue's places."""

    def __init__(self, pod_key: str, place: str) -> None:
        super().__init__(f"Pod {pod_key} is already present in {place} queue")


class EventRegistrationError(QueueError):
    """All failures of a profile's plugins to register their events, one a line."""
