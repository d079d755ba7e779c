"""Victims whose deletion is under way, so that no second preemptor evicts them again.

    begin --> deletion under way --deleted--> until the watch shows that the victim is leaving
                     |
                     +--gives back (failed, cancelled)--> the preemptors that counted on it are activated

The watch shows a deletion later than the API server grants it. Meanwhile other preemptors choose the same
victims: they count on the eviction that is under way. Upstream v1.36 evicts such victims once more.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from berth.objects.pods.pod import Pod


class _Departure(msgspec.Struct):
    victim: Pod
    deleted: bool = False
    counted_on_by: dict[str, Pod] = msgspec.field(default_factory=dict)


class Departures:
    """The evictions under way of all profiles, by the victim's UID."""

    def __init__(self) -> None:
        self._by_uid: dict[str, _Departure] = {}

    def __contains__(self, uid: str) -> bool:
        """Whether the pod of that UID is being evicted, and the watch is not known to have shown it."""
        return uid in self._by_uid

    def begin(self, victims: Iterable[Pod], preemptors: Iterable[Pod]) -> list[Pod]:
        """The victims that the caller is to evict; the preemptors count on the other ones' evictions."""
        begun: list[Pod] = []
        for victim in victims:
            departure = self._by_uid.get(victim.uid)
            if departure is None:
                self._by_uid[victim.uid] = _Departure(victim)
                begun.append(victim)
            else:
                departure.counted_on_by.update((pod.uid, pod) for pod in preemptors)
        return begun

    def deleted(self, victim: Pod) -> None:
        """The API server has granted the deletion."""
        if departure := self._by_uid.get(victim.uid):
            departure.deleted = True

    def give_back(self, victims: Sequence[Pod]) -> list[Pod]:
        """Forget those that were not deleted; returns the pods that counted on one of them."""
        waiting: dict[str, Pod] = {}
        for victim in victims:
            departure = self._by_uid.get(victim.uid)
            if departure is not None and not departure.deleted:
                del self._by_uid[victim.uid]
                waiting |= departure.counted_on_by
        return list(waiting.values())

    def forget(self, left: Callable[[Pod], bool]) -> None:
        """Forget the victims of which the watch has shown that they are leaving."""
        for uid in [uid for uid, each in self._by_uid.items() if each.deleted and left(each.victim)]:
            del self._by_uid[uid]
