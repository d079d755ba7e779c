"""Kind `requeue`: whether an event brings a pod back that was tried and rejected."""

from typing import Any

import msgspec

from berth.event_handlers.nodes import NodeHandler
from berth.event_handlers.pods import PodHandler, lister
from berth.event_handlers.resources import resource_handler
from berth.framework.attempts.diagnosis import FitError
from berth.framework.mirrors.listers import Store
from berth.framework.status import Status
from berth.objects.api_object import TypedObject
from berth.objects.pods.pod import Pod
from berth.queue.requeueing.hints import build_hint_map, wanted_actions
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.testing.handles import ManualClock, NoWaitingPods
from tests.golden.cluster import Cluster, build, pod_of
from tests.golden.hints import RESOURCES, classified, decoded, spelled


async def answer(scenario):
    """Who rejected the pod, the event as it is classified, and whether the pod left the pool."""
    cluster, pod = build(scenario), pod_of(scenario["pod"])
    rejectors = await rejected_by(cluster, pod)
    event = scenario["event"]
    old, new = (versioned(decoded(event, side), side) for side in ("old", "new"))
    waiting = Waiting(cluster)
    waiting.reject(pod, rejectors)
    waiting.tell(event["resource"], old, new)
    found = {
        "rejectedBy": sorted(rejectors),
        "events": [f"{e.resource}/{spelled(e.action)}" for e in classified(event["resource"], old, new)],
        "requeued": not waiting.queue.sizes().unschedulable,
    }
    return found, cluster.missing


async def rejected_by(cluster: Cluster, pod: Pod) -> set[str]:
    """The plugins that turned the pod or a node down; none where the pod fits."""
    framework = cluster.frameworks[pod.spec.scheduler_name]
    found = await cluster.search().find(framework, cluster.attempt(pod), cluster.answers(pod))
    if isinstance(found, Status) and isinstance(found.error, FitError):
        return found.error.diagnosis.unschedulable_plugins
    return set()


def versioned(obj, side: str):
    """The object with a resource version, by which handlers see that an update is new."""
    if isinstance(obj, dict):
        obj = msgspec.convert(obj, TypedObject)
    if obj is None:
        return None
    meta = msgspec.structs.replace(obj.metadata, resource_version={"old": "1", "new": "2"}[side])
    return msgspec.structs.replace(obj, metadata=meta)


class Waiting:
    """A queue with the handlers that feed it, over a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.clock = ManualClock()
        self.unassigned: Store[Pod] = Store()
        profiles = {
            name: QueueProfile(
                framework.plugins.pre_enqueue, build_hint_map(framework.plugins.by_name.values())
            )
            for name, framework in cluster.frameworks.items()
        }
        self.wanted = wanted_actions([profile.hints for profile in profiles.values()])
        (sorter,) = next(iter(cluster.frameworks.values())).plugins.queue_sort
        self.queue = SchedulingQueue(sorter.less, profiles, self.clock, pod_lister=lister(self.unassigned))
        self.nodes = NodeHandler(self.queue, cluster.cache, clock=self.clock)
        self.pods = PodHandler(
            self.queue,
            cluster.cache,
            unassigned=self.unassigned,
            profiles=profiles,
            waiting_pods=NoWaitingPods(),
            clock=self.clock,
        )

    def reject(self, pod: Pod, rejectors: set[str]) -> None:
        """Take the pod in, try it, and put it back as rejected."""
        self.pods.on_add(pod)
        record = self.queue.pop_specific(pod)
        record.unschedulable_plugins = set(rejectors)
        self.queue.add_unschedulable_if_not_present(record)

    def tell(self, kind: str, old: Any, new: Any) -> None:
        """Hand the event to the handler of its kind."""
        handler = {"Pod": self.pods, "Node": self.nodes}.get(kind) or resource_handler(
            RESOURCES[kind], Store(), self.queue, self.wanted, clock=self.clock
        )
        if old is None:
            handler.on_add(new)
        elif new is None:
            handler.on_delete(old)
        else:
            handler.on_update(old, new)
