"""What the live page shows at one moment, read in the scheduling loop from the scheduler's parts.

Called by: pages.py, at most once a second whatever the number of viewers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Any

import msgspec

from berth.cache.cache import Cache
from berth.explain.attempt_log import AttemptLog, TriedPod
from berth.live_page.history import History, Points
from berth.live_page.node_map import NodeMap, ResourceShare
from berth.live_page.recent_attempts import MAX_PLUGINS, AttemptTimeline, RecentAttempts
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot

MAX_DECISIONS = 25
MAX_MESSAGE = 300
MAX_TEXT = 300


class LastAttempt(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A pod's last attempt. Units: seconds since the epoch, milliseconds."""

    namespace: str
    name: str
    profile: str
    result: str
    node: str
    message: str
    rejected_by: list[str]
    attempt: int
    at: float
    took: float
    feasible: int


class SidecarSummary(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A sidecar: how it is, and how long its last calls took. Units: microseconds."""

    name: str
    version: str
    state: str
    circuit: str
    shadow: bool
    profiles: list[str]
    error: str
    calls: int = 0
    p50: int = 0
    p99: int = 0


class LiveState(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """All that changes from second to second; `nodes` is the version of the names that places stand for."""

    leads: bool
    nodes: str
    node_count: int
    pod_count: int
    resources: list[ResourceShare]
    cordoned: bytes
    queue: dict[str, int]
    history: Points
    pending: list[LastAttempt]
    decisions: list[LastAttempt]
    plugins: list[SidecarSummary]
    attempts: list[AttemptTimeline]


class Collected(msgspec.Struct, frozen=True):
    """A moment, and the nodes that it is about in JSON."""

    state: LiveState
    nodes: bytes


class Collector(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the parts between two turns of the scheduling loop (`turn` is the loop's lock).

    `plugins` gives a line for each sidecar, as `berth plugin list` has it.
    """

    cache: Cache
    snapshot: Snapshot
    queue: SchedulingQueue
    attempts: AttemptLog
    recent: RecentAttempts
    history: History
    nodes: NodeMap
    plugins: Callable[[], Iterable[Mapping[str, Any]]]
    leads: Callable[[], bool]
    turn: AbstractAsyncContextManager[object]

    async def collect(self) -> Collected:
        """The moment. Cost: O(nodes) in numpy, and bounded steps in Python."""
        async with self.turn:
            self.cache.update_snapshot(self.snapshot)
            self.nodes.refresh()
            return Collected(self._state(), self.nodes.nodes)

    def _state(self) -> LiveState:
        return LiveState(
            leads=self.leads(),
            nodes=self.nodes.version,
            node_count=len(self.snapshot),
            pod_count=self.cache.pod_count(),
            resources=self.nodes.resources(),
            cordoned=self.nodes.cordoned(),
            queue=self.queue.sizes()._asdict(),
            history=self.history.points(),
            pending=list(islice(self._pending(), MAX_DECISIONS)),
            decisions=list(islice(map(decision, self.attempts.latest()), MAX_DECISIONS)),
            plugins=self._plugins(),
            attempts=self.recent.timelines(),
        )

    def _pending(self) -> Iterator[LastAttempt]:
        """Pods that wait in the queue after an attempt that failed."""
        for key, uid in self.recent.failed():
            tried = self.attempts.tried(uid)
            if tried is not None and self.queue.record(*key.split("/", 1)) is not None:
                yield decision(tried)

    def _plugins(self) -> list[SidecarSummary]:
        calls = {each.plugin: each for each in self.recent.calls()}
        found = []
        for line in islice(self.plugins(), MAX_PLUGINS):
            plugin = SidecarSummary(
                name=line["name"],
                version=line["version"][:MAX_TEXT],
                state=line["state"],
                circuit=line["circuit"],
                shadow=line["shadow"],
                profiles=line["profiles"],
                error=line["error"][:MAX_TEXT],
            )
            called = calls.get(plugin.name)
            if called is not None:
                plugin = msgspec.structs.replace(plugin, calls=called.calls, p50=called.p50, p99=called.p99)
            found.append(plugin)
        return found


def decision(pod: TriedPod) -> LastAttempt:
    """The pod's last attempt in short."""
    last = pod.attempts[-1]
    namespace, _, name = pod.key.partition("/")
    return LastAttempt(
        namespace=namespace,
        name=name,
        profile=pod.profile,
        result=last.result,
        node=last.node,
        message=last.message[:MAX_MESSAGE],
        rejected_by=list(last.rejected_by),
        attempt=last.attempt,
        at=round(last.started_at, 3),
        took=round(last.total_milliseconds, 3),
        feasible=last.feasible_nodes,
    )
