"""Pods for which others were evicted: what they will use counts until they have it.

promised --last victim gone--> awaited --placed--> (nothing)
                                  +--not placed in time--> (nothing)     such as a pod deleted meanwhile
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from berth_capacity_scheduling.amounts import Amounts
from berth_capacity_scheduling.balance import Balance

PATIENCE_SECONDS = 30.0
"""How long a promise holds after the last victim has gone."""


@dataclass(slots=True)
class Promise:
    """A pod that room was made for on a node; `victims` are those that are still there."""

    uid: str
    namespace: str
    node_name: str
    priority: int
    requests: Amounts
    victims: set[str]
    awaited_since: float | None = None


@dataclass
class Promises:
    """Promises by pod; `now` is a clock in seconds that never goes back."""

    now: Callable[[], float]
    by_uid: dict[str, Promise] = field(default_factory=dict)

    def give(self, promise: Promise) -> None:
        """Hold room for a pod."""
        self.by_uid[promise.uid] = promise

    def withdraw(self, uid: str) -> bool:
        """Hold none any more; whether there was any."""
        return self.by_uid.pop(uid, None) is not None

    def victim_gone(self, uid: str) -> None:
        """Start the time of those that waited for this pod alone."""
        for promise in self.by_uid.values():
            if uid in promise.victims:
                promise.victims.discard(uid)
                if not promise.victims:
                    promise.awaited_since = self.now()

    def victims(self) -> set[str]:
        """Return all pods that are to leave."""
        return set().union(*(promise.victims for promise in self.by_uid.values()))

    def beside(self, uid: str) -> Iterator[Promise]:
        """Yield the promises to others that still hold."""
        for promise in self._held():
            if promise.uid != uid:
                yield promise

    def _held(self) -> Iterable[Promise]:
        now = self.now()
        for promise in tuple(self.by_uid.values()):
            if promise.awaited_since is not None and now - promise.awaited_since > PATIENCE_SECONDS:
                del self.by_uid[promise.uid]
            else:
                yield promise


def counting(promises: Iterable[Promise], balance: Balance, namespace: str, priority: int) -> list[Promise]:
    """Return the promises that a pod of this namespace and priority has to respect.

    Of its own namespace those to pods that are as important, of others those that are within their min.
    """
    return [
        promise
        for promise in promises
        if (promise.priority >= priority if promise.namespace == namespace else _guaranteed(promise, balance))
    ]


def _guaranteed(promise: Promise, balance: Balance) -> bool:
    quota = balance.quota(promise.namespace)
    return quota is not None and balance.within_min(quota, promise.requests)


@contextmanager
def counted(promises: Iterable[Promise], balance: Balance) -> Iterator[None]:
    """The balance as if the promised pods were there, for as long as the block lasts."""
    kept = list(promises)
    for promise in kept:
        balance.use(promise.namespace, promise.requests)
    try:
        yield
    finally:
        for promise in kept:
            balance.use(promise.namespace, promise.requests, -1)
