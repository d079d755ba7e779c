"""Keys that a QueueSort sidecar gives to pods: asked for on the way in, changed later.

    new, or another template --ask--> the pod waits in the pool --key, or NO_KEY in time--> activeQ
    queued --the plugin changes its mind--> put again, O(log n)
    deleted, bound --> the plugin hears of it, and its keys for the pod count no more

Without such a plugin none of this is called but for one look at the profile.

Source: docs/protocol.md "Queue order".
"""

from collections.abc import Mapping

from berth.framework.interface import KeyedQueueSortPlugin
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import SUCCESS, Status
from berth.objects.pods.pod import Pod
from berth.queue.requeueing.queue_profile import QueueProfile


class SortKeys:
    """The records of pods that were asked about, by UID."""

    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._records: dict[str, tuple[QueuedPodInfo, KeyedQueueSortPlugin]] = {}

    def get(self, uid: str) -> QueuedPodInfo | None:
        """The record of a pod that was asked about, in flight or not."""
        known = self._records.get(uid)
        return known[0] if known else None

    def sorter_for(self, record: QueuedPodInfo) -> KeyedQueueSortPlugin | None:
        """The plugin that is to be asked for the pod's key; None where it was, or there is none."""
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None or profile.sorter is None or record.sort_key_asked is record.pod.template:
            return None
        return profile.sorter

    async def ask(self, sorter: KeyedQueueSortPlugin, record: QueuedPodInfo) -> Status:
        """Give the record its key, unless the pod became another one meanwhile; nothing turns it down."""
        pod = record.pod
        self._records[pod.uid] = record, sorter
        key = await sorter.key_of(pod)
        if record.pod.template is pod.template:
            record.sort_key, record.sort_key_asked = key, pod.template
        return SUCCESS

    def forget(self, pod: Pod) -> None:
        """The pod waits no more."""
        known = self._records.pop(pod.uid, None) if self._records else None
        if known is not None:
            known[1].left(pod.uid)
