"""Says on a pod that plugins have kept out of the queue for long what it waits for.

kube-scheduler writes nothing on such a pod: its user sees a Pending pod without a condition or an event
(kubernetes/kubernetes#142330). The reason is SchedulingGated and not Unschedulable, because autoscalers would
add nodes for the latter.
"""

import logging
from collections.abc import Iterable, Iterator

import msgspec

from berth.framework.clock import Clock
from berth.framework.handle import ApiWriter, PodGoneError
from berth.framework.pod_conditions import changes, unscheduled
from berth.framework.ports.background import Background
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.objects.pods.pod import Pod, PodCondition

log = logging.getLogger(__name__)

REASON_GATED = "SchedulingGated"
OF_THE_API_SERVER = "SchedulingGates"
"""The plugin for whose gates the API server writes the condition itself."""


class GatedPods(msgspec.Struct, frozen=True):
    """Writes PodScheduled=False with the plugin's words; where that fails, the next flush does so again."""

    writer: ApiWriter
    background: Background
    clock: Clock

    def tell(self, records: Iterable[QueuedPodInfo]) -> None:
        """Write the condition of each pod whose plugin gave words that the pod does not have yet."""
        for pod, plugin, text in _pods(records):
            if plugin == OF_THE_API_SERVER or not text:
                continue
            condition = unscheduled(pod, REASON_GATED, text, self.clock.wall())
            if changes(pod, condition):
                self.background.spawn(self._write(pod, condition), f"status of {pod.key}")

    async def _write(self, pod: Pod, condition: PodCondition) -> None:
        try:
            await self.writer.patch_pod_status(pod, condition, None)
        except PodGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the pod waits as before; only its status is stale
            log.warning("status not written pod=%s err=%s", pod.key, error)


def _pods(records: Iterable[QueuedPodInfo]) -> Iterator[tuple[Pod, str, str]]:
    """Each pod, the plugin that gates it, and the words: its group's where it only waits with its group."""
    for record in records:
        for member in record.members:
            text = member.gating_message if member.gating_plugin else record.gating_message
            yield member.pod, member.gating_plugin, text
