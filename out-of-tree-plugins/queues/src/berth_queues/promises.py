"""Pods and groups for which others were evicted: what they will use counts until they have it.

promised --last victim gone--> awaited --all placed--> (nothing)
    |                             +--not placed in time--> (nothing), and a pause before the next evictions
    +--a victim is not deleted in time--> the same

A promise that was not redeemed means that pods were evicted in vain. Each one in a row doubles the time until
evictions are planned for the same pod or group again.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from berth_queues.amounts import Amounts
from berth_queues.ledger import Ledger
from berth_queues.registry import Registry

PATIENCE_SECONDS = 30.0
"""How long a promise holds after the last victim has gone, and while a victim is not deleted."""
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 60.0, 3600.0
MAX_PAUSES = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is to go, and what it will use there."""

    node_name: str
    requests: Amounts


@dataclass(slots=True)
class Promise:
    """Places that were made for a pod or a group; `victims` are those that are still there."""

    key: Hashable
    queue: str
    priority: int
    places: dict[str, Place]
    victims: set[str]
    entitled: bool
    """The queue is within what it is entitled to with the pods: other queues respect that."""
    awaited_since: float | None = None
    staying: set[str] = field(default_factory=set)
    """The victims of which no deletion was seen yet."""
    given: float | None = None
    """Since when it is held, by the clock of `Promises`; None: not yet."""
    begun: bool = False
    """Whether a deletion of a victim was seen: an answer that comes too late, or is refused, has none."""
    planned: frozenset[str] = frozenset()
    """The victims that there were at first."""
    _asked: dict[str, int] = field(default_factory=dict)

    def binds(self, queue: str, priority: int) -> bool:
        """Return whether pods of that queue and priority may not use quota that is promised."""
        return self.priority >= priority if self.queue == queue else self.entitled

    def note_asked(self, uid: str, attempt: int) -> bool:
        """Note that a pod was asked about; return whether it was in an attempt before this one."""
        again = self._asked.get(uid, attempt) != attempt
        if again:
            self._asked.clear()
        self._asked[uid] = attempt
        return again


@dataclass(slots=True)
class _Pause:
    count: int
    until: float


@dataclass
class Promises:
    """Promises by pod or group; `now` is a clock in seconds that never goes back."""

    now: Callable[[], float]
    by_key: dict[Hashable, Promise] = field(default_factory=dict)
    _pauses: dict[Hashable, _Pause] = field(default_factory=dict)

    def give(self, promise: Promise) -> None:
        """Hold places for a pod or a group."""
        if promise.given is None:
            promise.given = self.now()
        promise.planned = frozenset(promise.victims)
        if not promise.victims:
            promise.awaited_since = self.now()
        self.by_key[promise.key] = promise

    def take(self, key: Hashable) -> Promise | None:
        """Return the promise that is held for a pod or a group, and hold it no more."""
        return self.by_key.pop(key, None)

    def placed(self, key: Hashable, uid: str) -> None:
        """Note that a pod has its place, or another; with the last one the promise is redeemed."""
        promise = self.by_key.get(key)
        if promise is not None and promise.places.pop(uid, None) is not None and not promise.places:
            del self.by_key[key]
            self._pauses.pop(key, None)

    def withdraw(self, key: Hashable, uid: str) -> bool:
        """Hold no place for a pod that is gone; whether there was one."""
        promise = self.by_key.get(key)
        if promise is None or promise.places.pop(uid, None) is None:
            return False
        if not promise.places:
            del self.by_key[key]
        return True

    def victim_leaving(self, uid: str) -> None:
        """Note that a pod was deleted, and is ending."""
        for promise in self.by_key.values():
            promise.begun |= uid in promise.staying
            promise.staying.discard(uid)

    def victim_gone(self, uid: str) -> bool:
        """Start the time of those that waited for this pod alone; whether any did."""
        found = False
        for promise in self.by_key.values():
            if uid in promise.victims:
                promise.victims.discard(uid)
                promise.staying.discard(uid)
                found = promise.begun = True
                if not promise.victims:
                    promise.awaited_since = self.now()
        return found

    def victim_back(self, uid: str) -> None:
        """Wait for a pod again that was gone while the scheduler tried to do without it."""
        for promise in self.by_key.values():
            if uid in promise.planned and uid not in promise.victims:
                promise.victims.add(uid)
                promise.staying.add(uid)
                promise.awaited_since = None
                promise.begun = bool(promise.planned - promise.staying)

    def victims(self) -> set[str]:
        """Return all pods that are to leave."""
        return set().union(*(promise.victims for promise in self.by_key.values()))

    def paused(self, key: Hashable) -> bool:
        """Return whether evictions for the pod or group are not to be planned yet."""
        pause = self._pauses.get(key)
        return pause is not None and self.now() < pause.until

    def held(self) -> Iterable[Promise]:
        """Return the promises that still hold."""
        for promise in tuple(self.by_key.values()):
            since = promise.given if promise.staying else promise.awaited_since
            if since is not None and self.now() - since >= PATIENCE_SECONDS:
                self._expired(promise)
        return tuple(self.by_key.values())

    def clear(self) -> None:
        """Forget all promises; pauses stay."""
        self.by_key.clear()

    def _expired(self, promise: Promise) -> None:
        del self.by_key[promise.key]
        if promise.victims and not promise.begun:
            return  # none of them was evicted: the scheduler found that the pod would not fit
        before = self._pauses.pop(promise.key, None)
        count = 1 if before is None else before.count + 1
        if len(self._pauses) >= MAX_PAUSES:
            del self._pauses[next(iter(self._pauses))]
        wait = min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * 2.0 ** (count - 1))
        self._pauses[promise.key] = _Pause(count, self.now() + wait)


def counting(
    promises: Iterable[Promise], ledger: Ledger, key: Hashable, queue: str, priority: int
) -> Iterator[tuple[str, Place]]:
    """Yield queue and place of what a pod of this queue and priority has to respect.

    Of its own queue those promised to pods that are as important, of others those that take back what they
    are entitled to; none of its own, and none of pods that are counted already.
    """
    for promise in promises:
        if promise.key != key and promise.binds(queue, priority):
            for uid, place in promise.places.items():
                if uid not in ledger.by_uid:
                    yield promise.queue, place


def nominated(
    promises: Iterable[Promise], ledger: Ledger, key: Hashable, queue: str, priority: int
) -> Iterator[Place]:
    """Yield the places on nodes that a pod of this queue and priority has to leave free.

    The scheduler keeps a node's room for nominated pods from those that are not more important.
    """
    for promise in promises:
        if promise.key != key and (promise.priority >= priority or promise.binds(queue, priority)):
            yield from (place for uid, place in promise.places.items() if uid not in ledger.by_uid)


@contextmanager
def counted(places: Iterable[tuple[str, Place]], registry: Registry) -> Iterator[None]:
    """Let queues use what is promised, for as long as the block lasts."""
    kept: list[tuple[str, Mapping[str, int]]] = [(queue, place.requests) for queue, place in places]
    for queue, requests in kept:
        registry.use(queue, requests)
    try:
        yield
    finally:
        for queue, requests in kept:
            registry.use(queue, requests, -1)
