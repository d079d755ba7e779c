"""Whether cache, queue and snapshot still say what the watches showed, and what they hold: for people.

On SIGUSR2 the comparison and a dump go into the log; `/debug/cache` answers with the same as JSON. Both are
taken between two turns of the scheduling loop, when everything that is under way has a place where it counts.

Source: pkg/scheduler/backend/cache/debugger (Kubernetes v1.36).
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from berth.cache.cache import Cache
from berth.client.watching.reflector import Reflector
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.scheduler.scheduler import Scheduler
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

SUMS = ("requested", "non_zero", "ports", "claims", "allocatable", "allowed_pods")


class CacheDebugger(msgspec.Struct, frozen=True):
    """Looks at a core and at the mirrors that feed it; `turn` is the scheduling loop's lock."""

    scheduler: Scheduler
    nodes: Reflector[Node]
    pods: Reflector[Pod]
    turn: asyncio.Lock

    async def report(self) -> dict[str, Any]:
        """The differences, none where all is well, and how much is where."""
        async with self.turn:
            scheduler = self.scheduler
            scheduler.cache.update_snapshot(scheduler.snapshot)
            return {"differences": list(self._differences()), **self._held()}

    async def write_whenever(self, wanted: asyncio.Event) -> None:
        """Write to the log each time the event is set."""
        while True:
            await wanted.wait()
            wanted.clear()
            await self.write_to_log()

    async def write_to_log(self) -> None:
        """The comparison and a dump, as upstream's debugger writes them."""
        report = await self.report()
        for difference in report.pop("differences"):
            log.error("cache mismatch difference=%s", difference)
        log.info("cache compared with the watches nodes=%s pods=%s", report["nodes"], report["pods"])
        for info in self.scheduler.cache.node_infos():
            held = ",".join(pod.pod.key for pod in info.pods.values())
            log.info("cached node name=%s requested=%s pods=%s", info.name, info.requested, held)
        pods, summary = self.scheduler.queue.pending_pods()
        log.info("scheduling queue summary=%s pods=%s", summary, ",".join(pod.key for pod in pods))

    def _held(self) -> dict[str, Any]:
        scheduler = self.scheduler
        nominator = scheduler.queue.nominator
        return {
            "nodes": scheduler.cache.node_count(),
            "pods": scheduler.cache.pod_count(),
            "assumed": scheduler.cache.assumed_count(),
            "queue": scheduler.queue.pods_by_queue(),
            "inFlight": list(scheduler.queue.in_flight()),
            "waiting": len(scheduler.waiting_pods),
            "nominated": {
                node: [pod.key for pod in nominator.nominated_pods_for_node(node)]
                for node in nominator.nodes_with_nominations()
            },
        }

    def _differences(self) -> Iterator[str]:
        watched = {pod.uid: pod for pod in self.pods.objects()}
        placed = {uid: pod for uid, pod in watched.items() if pod.node_name}
        yield from self._of_placed_pods(watched, placed)
        yield from self._of_waiting_pods(watched)
        yield from self._of_groups(watched)
        yield from self._of_nodes(self._rebuilt(placed.values()))

    def _of_placed_pods(self, watched: Mapping[str, Pod], placed: Mapping[str, Pod]) -> Iterator[str]:
        cache = self.scheduler.cache
        cached = {pod.uid: pod for info in cache.node_infos() for pod in (p.pod for p in info.pods.values())}
        for uid, pod in placed.items():
            held = cached.get(uid)
            if held is None:
                yield f"pod {pod.key} is on {pod.node_name} and not in the cache"
            elif held.node_name != pod.node_name or cache.is_assumed(uid):
                yield f"pod {pod.key} is on {pod.node_name}, the cache has not taken that over"
        for uid, pod in cached.items():
            if uid not in watched:
                yield f"pod {pod.key} is in the cache and does not exist"
            elif uid not in placed and not cache.is_assumed(uid):
                yield f"pod {pod.key} is in the cache and on no node"

    def _of_waiting_pods(self, watched: Mapping[str, Pod]) -> Iterator[str]:
        scheduler = self.scheduler
        queued = {pod.uid: pod for pod in scheduler.queue.pending_pods()[0]}
        in_flight = set(scheduler.queue.in_flight())
        for uid, pod in watched.items():
            ours = pod.spec.scheduler_name in self.scheduler.profiles.frameworks and not pod.node_name
            known = uid in queued or uid in in_flight or scheduler.cache.is_assumed(uid)
            if ours and not known and not pod.terminating:
                yield f"pod {pod.key} is on no node and in no queue"
            if uid in queued and scheduler.cache.is_assumed(uid):
                yield f"pod {pod.key} is assumed and in the queue"
        for uid, pod in queued.items():
            if uid not in watched or watched[uid].node_name:
                yield f"pod {pod.key} is in the queue and not to be scheduled"
        yield from (f"pod {uid} is in flight and does not exist" for uid in in_flight if uid not in watched)

    def _of_groups(self, watched: Mapping[str, Pod]) -> Iterator[str]:
        """Which pods each group has, and how far they are; nothing where groups are not kept."""
        cache = self.scheduler.cache
        if cache.pod_groups is None:
            return
        rebuilt = PodGroupStates()
        for uid, pod in watched.items():
            if pod.node_name or pod.spec.scheduler_name in self.scheduler.profiles.frameworks:
                rebuilt.add(pod)
                if cache.is_assumed(uid) and (assumed := cache.get_pod(uid)) is not None:
                    rebuilt.assume(assumed)
        for key in sorted({*rebuilt, *cache.pod_groups}):
            wanted, held = rebuilt.known(key).standing, cache.pod_groups.known(key).standing
            if wanted != held:
                yield f"pod group {key} has pods {held}, rebuilt {wanted}"

    def _rebuilt(self, placed: Iterable[Pod]) -> Cache:
        """A cache made from nothing of what the watches showed and what is assumed."""
        current, rebuilt = self.scheduler.cache, Cache()
        for node in self.nodes.objects():
            rebuilt.add_node(node)
        for pod in placed:
            rebuilt.add_pod(pod)
        for info in current.node_infos():
            for pod in (held.pod for held in info.pods.values()):
                if current.is_assumed(pod.uid) and rebuilt.get_pod(pod.uid) is None:
                    rebuilt.add_pod(pod)
        return rebuilt

    def _of_nodes(self, rebuilt: Cache) -> Iterator[str]:
        scheduler = self.scheduler
        wanted = {info.name: info for info in rebuilt.node_infos()}
        held = {info.name: info for info in scheduler.cache.node_infos()}
        yield from (f"node {name} is missing in the cache" for name in sorted(wanted.keys() - held.keys()))
        yield from (f"node {name} is in the cache in vain" for name in sorted(held.keys() - wanted.keys()))
        for name in sorted(wanted.keys() & held.keys()):
            for field in SUMS:
                if _said(wanted[name], field) != _said(held[name], field):
                    found = f"{_said(held[name], field)}, rebuilt {_said(wanted[name], field)}"
                    yield f"node {name}: {field} is {found}"
        yield from _of_snapshots(rebuilt.fresh_snapshot(), scheduler.snapshot)


def _said(info: NodeInfo, field: str) -> Any:
    """A node's sums without those that are nought."""
    value = getattr(info, field)
    return {key: amount for key, amount in value.items() if amount} if isinstance(value, dict) else value


def _of_snapshots(rebuilt: Snapshot, held: Snapshot) -> Iterator[str]:
    if set(rebuilt.names) != set(held.names):
        yield f"the snapshot has {len(held.names)} nodes, rebuilt {len(rebuilt.names)}"
        return
    rows = np.array([held.row_of[name] for name in rebuilt.names], dtype=np.intp)
    for field in ("pod_count", "allowed_pods", "unschedulable"):
        if not np.array_equal(getattr(rebuilt, field), getattr(held, field)[rows]):
            yield f"the snapshot's column {field} differs from a rebuilt one"
    for index, resource in enumerate(rebuilt.resource_names):
        offered = held.offered(resource)
        found = np.zeros(len(rows), dtype=np.int64) if offered is None else offered[rows]
        if not np.array_equal(rebuilt.allocatable[index], found):
            yield f"the snapshot's column allocatable of {resource} differs from a rebuilt one"
        # Without a place among the columns, a resource is known where nodes offer it.
        known = slice(None) if held.resource_index(resource) is not None else rebuilt.allocatable[index] != 0
        if not np.array_equal(rebuilt.requested[index][known], held.held(resource)[rows][known]):
            yield f"the snapshot's column requested of {resource} differs from a rebuilt one"
