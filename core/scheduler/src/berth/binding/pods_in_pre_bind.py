"""Pods whose PreBind plugins are at work: until that is over, a more important pod may stop their binding.

    at work --cancel--> cancelled: the binding cycle ends with the canceller's message
       |----mark_prebound--> prebound: too late to cancel, the pod is being bound

Either end excludes the other, so a preemptor knows whether it has to delete the pod instead.

Source: pkg/scheduler/framework/runtime/pods_in_prebind_map.go (Kubernetes v1.36).
"""

from berth.framework.ports.background import Background, Promise


class PodInPreBind:
    """One pod; `cancelled` is awaited beside its plugins and gives the message."""

    def __init__(self, background: Background) -> None:
        self.cancelled: Promise = background.outcome()
        self.message = ""
        """Why the binding was cancelled; empty if it was not."""
        self.shown: Promise | None = None
        """Set once the pod's condition says what it waits for; None where that is not to be written."""
        self.plugins: list[str] = []
        """The plugins that are at work on it now."""
        self._prebound = False

    def cancel(self, message: str) -> bool:
        """End the binding with that message, or with the one given before; False once it is prebound."""
        if self._prebound:
            return False
        if not self.message:
            self.message = message
            self.cancelled.set(message)
        return True

    def mark_prebound(self) -> bool:
        """Rule out cancellation from now on; False if it was cancelled before."""
        self._prebound = not self.message
        return self._prebound


class PodsInPreBind:
    """All such pods of all profiles, by UID."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._by_uid: dict[str, PodInPreBind] = {}

    def add(self, uid: str) -> PodInPreBind:
        """Take in a pod whose PreBind plugins begin now."""
        pod = self._by_uid[uid] = PodInPreBind(self._background)
        return pod

    def get(self, uid: str) -> PodInPreBind | None:
        """The pod of that UID, None where it is not in PreBind."""
        return self._by_uid.get(uid)

    def remove(self, uid: str) -> None:
        """Its binding cycle is past PreBind, or over."""
        self._by_uid.pop(uid, None)
