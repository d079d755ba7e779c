"""The keys of waiting pods as the scheduler knows them, and what changes of them is sent."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from berth_queues.device_claims import devices_asked
from berth_queues.entitled import NewlyEntitled
from berth_queues.groups import facts_of
from berth_queues.settings import SYSTEM_CLUSTER_CRITICAL, Settings
from berth_queues.waiting import WaitingPod
from berth_sdk import Pod, SortKey, Timer

if TYPE_CHECKING:
    from berth_queues.plugin import Queues

REFRESH_SECONDS = 1.0
"""How often keys are sent that became others: no pod waits for them."""
TOLERANCE_PPM = 1000
"""Keys that are off by less than a thousandth of the cluster stay."""
PODS_AT_ONCE = 256
"""How many keys are worked out at once."""
MAX_PART = 0.1
"""The part of the time that is spent on keys: after a long refresh the next one comes later."""


class Keys:
    """What was said of each waiting pod."""

    def __init__(self, plugin: "Queues") -> None:
        self._plugin = plugin
        self._sent: dict[str, SortKey] = {}
        self._timer: Timer | None = None
        self._pause = self._spent = 0.0
        self._refreshed: Iterator[tuple[WaitingPod, SortKey]] | None = None
        self._entitled = NewlyEntitled(plugin.cluster)

    def key_of(self, pod: Pod) -> SortKey:
        """Return the key of a pod that was queued, or changed."""
        cluster, metadata, spec = self._plugin.cluster, pod.metadata, pod.spec
        asked = devices_asked(pod)
        waiting = WaitingPod(
            metadata.uid,
            metadata.namespace,
            cluster.registry.name_of(metadata.namespace, metadata.labels),
            spec.scheduler_name or "default-scheduler",
            spec.priority or 0,
            0,
            cluster.devices.asked(asked),
            metadata.labels,
            facts_of(pod).group,
            placed=metadata.uid in cluster.ledger.by_uid,
            asked=asked,
            since=self._plugin.clock.now(),
        )
        if cluster.waiting.put(waiting) or metadata.uid not in self._sent:
            self._sent[metadata.uid] = self._key(waiting, cluster.order.last(waiting))
            if cluster.order.unit(waiting.queue) != waiting.queue:
                cluster.waiting.changed.add(waiting.queue)
        self.refresh_soon()
        return self._sent[metadata.uid]

    def leave(self, uids: Sequence[str]) -> None:
        """Forget pods that wait no more."""
        for uid in uids:
            self._plugin.cluster.waits_no_more(uid)
            self._sent.pop(uid, None)
        self.refresh_soon()

    def all_changed(self) -> None:
        """Work all keys out anew soon."""
        self._plugin.cluster.waiting.changed |= self._plugin.cluster.waiting.lines.keys()
        self.refresh_soon()

    def refresh_soon(self) -> None:
        """Send the keys that became others in a second, later after a refresh that took long."""
        if self._plugin.cluster.waiting.changed and self._timer is None:
            self._timer = self._plugin.clock.after(REFRESH_SECONDS + self._pause, self.refresh)

    def refresh(self) -> None:
        """Work out the keys of some pods, send those that became others, and go on with the next ones."""
        cluster, begun = self._plugin.cluster, time.thread_time()
        if self._refreshed is None:
            self._refreshed, self._spent = self._all_keys(), 0.0
        some = list(islice(self._refreshed, PODS_AT_ONCE))
        changed: dict[str, SortKey] = {}
        for pod, key in some:
            if cluster.waiting.by_uid.get(pod.uid) is pod:
                self._compare(pod, self._key(pod, key), changed)
        if changed:
            self._plugin.requeue.sort_keys(changed, "shares changed")
        self._spent += time.thread_time() - begun
        if len(some) == PODS_AT_ONCE:
            # Calls that came meanwhile are answered first.
            self._timer = self._plugin.clock.after(0.0, self.refresh)
        else:
            self._end_refresh()

    def _all_keys(self) -> Iterator[tuple[WaitingPod, SortKey]]:
        cluster = self._plugin.cluster
        cluster.past.adjust(self._plugin.clock.now())
        queues, cluster.waiting.changed = cluster.waiting.changed, set()
        for unit in sorted({cluster.order.unit(queue) for queue in queues}):
            yield from cluster.order.keys(unit)

    def _end_refresh(self) -> None:
        self._refreshed = self._timer = None
        if self._plugin.by_fair_share and (entitled := self._entitled.pods()):
            self._plugin.requeue.pods(entitled, "the fair share of their queue grew")
        self._pause = self._spent / MAX_PART
        self.refresh_soon()

    def stop(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    def _compare(self, pod: WaitingPod, new: SortKey, changed: dict[str, SortKey]) -> None:
        old = self._sent.get(pod.uid)
        if (
            old is None
            or old[:3] != new[:3]
            or any(abs(a - b) >= TOLERANCE_PPM for a, b in zip(old[3:], new[3:], strict=True))
        ):
            changed[pod.uid] = self._sent[pod.uid] = new

    def _key(self, pod: WaitingPod, share: SortKey) -> SortKey:
        settings: Settings = self._plugin.arguments_for(pod.profile)
        if settings.first == "priority":
            return (-pod.priority, *share)
        return (-int(pod.priority >= SYSTEM_CLUSTER_CRITICAL), *share)
