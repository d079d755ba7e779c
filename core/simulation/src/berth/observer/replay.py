"""What Berth decides in the place of a recorded cluster's scheduler, at the moment of each decision.

    event --> are decisions seen before it? --> the profile's plugins are asked about each --> compared
                                                     --> the pod counts on its recorded node from then on
          --> the cluster goes on as it did

The recorded node agrees where it is among the best ones, by whatever chance one of these was taken. Each
decision is judged by itself: one difference is not the cause of the next.

Called by: `berth simulate replay`.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from berth.config.loading import LoadedConfig
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.observer.decisions import ObservedDecision, decisions_of
from berth.observer.reading import ClusterRecording, Happened, open_recording
from berth.recordings.cluster.events import Verb
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from berth.simulation.errors import InputError
from berth.simulation.plugins.plugin_settings import check_in_process
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.recordings.replay import MAX_SHOWN, ReplayDifference
from berth.simulation.recordings.second_opinion import OpinionNodes, best_of
from berth.simulation.running.engine import Simulation
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.outcome import API_VERSION
from berth.simulation.running.plugins import NoOutsidePlugins
from berth.simulation.running.scores import ask, scores_of

SIMULATOR: Final = "kube-scheduler-simulator"
SAMPLED_NODES: Final = 100
"""Of more nodes kube-scheduler looks at a part (minFeasibleNodesToFind)."""

SAME: Final = "same"
OTHER_NODE: Final = "a better node"
NO_FIT: Final = "the node does not fit"
NO_NODE: Final = "no node"
A_NODE: Final = "a node where there was none"

OTHER_SCHEDULER: Final = "of a scheduler that has no profile"
GROUPED: Final = "decided on with their group"


class ObservedReplay(msgspec.Struct, rename="camel", kw_only=True):
    """What came of a replay of a cluster's events."""

    api_version: str = API_VERSION
    kind: str = "ObservedReplay"
    file: str
    source: str
    """What recorded it."""
    began: str = ""
    ended: str = ""
    events: int = 0
    nodes: int = 0
    """At the end."""
    compared: int = 0
    """Decisions that were seen, and that a profile was asked about."""
    different: int = 0
    outcomes: dict[str, int] = {}
    """How many of them came to what."""
    not_compared: dict[str, int] = {}
    """Decisions that were seen and not asked about, by the reason."""
    differences: list[ReplayDifference] = []
    """The first of them."""
    warnings: list[str] = []


def replay_observed(path: Path, loaded: LoadedConfig, *, shown: int = MAX_SHOWN) -> ObservedReplay:
    """Compare the decisions of a recorded cluster with those of a configuration.

    `shown` is how many differences are kept with their scores.
    Raises: InputError, PluginsError, BuildError, EventRegistrationError.
    """
    check_in_process(loaded)
    with _opened(path) as first:
        decisions = decisions_of(first.events())
    with _opened(path) as recording, asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        try:
            return runner.run(_played(recording, loaded, decisions, shown))
        except ExceptionGroup as group:
            # One thing went wrong, and the rest was cancelled for it.
            raise group.exceptions[0] from None


@contextmanager
def _opened(path: Path) -> Iterator[ClusterRecording]:
    with open_recording(path) as recording:
        if recording is None:
            raise InputError(f"{path} is no recording of a cluster: make one with `berth record DIR`")
        yield recording


async def _played(
    recording: ClusterRecording,
    loaded: LoadedConfig,
    decisions: Mapping[int, list[ObservedDecision]],
    shown: int,
) -> ObservedReplay:
    async with asyncio.TaskGroup() as tasks:
        playing = ReplayedCluster(
            Simulation(ClusterInput(), SimulationOptions(loaded), NoOutsidePlugins(), tasks), shown
        )
        for event in recording.events():
            await playing.until(event.at)
            for decision in decisions.get(event.number, ()):
                await playing.compare(decision, event)
            playing.take(event)
        await playing.simulation.end()
    header = recording.read.header
    source = SIMULATOR if header is None else f"berth {header.version}"
    found = playing.found(str(recording.read.path), source)
    found.warnings += recording.warnings
    return found


@dataclass
class ReplayedCluster:
    """A cluster that goes on as recorded, in virtual time, before a core that decides nothing by itself."""

    simulation: Simulation
    shown: int
    differences: list[ReplayDifference] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    not_compared: Counter[str] = field(default_factory=Counter)
    events: int = 0
    max_nodes: int = 0
    began: datetime | None = None
    ended: datetime | None = None
    _assumed: dict[str, str] = field(default_factory=dict)
    """The node of each pod whose binding is still to come, by UID."""

    async def until(self, at: datetime) -> None:
        """Let time pass; an event that is out of order comes at once."""
        earlier, self.ended = self.ended or at, at
        self.began = self.began or at
        # The loop's time is no time since the epoch, and decisions read neither.
        await asyncio.sleep(max(0.0, (at - earlier).total_seconds()))

    def take(self, event: Happened) -> None:
        """Change the cluster."""
        self.events += 1
        state, obj = self.simulation.state, event.obj
        known = state.get(type(obj), obj.key)
        if known is not None and (event.verb is Verb.DELETE or known.uid != obj.uid):
            self._assumed.pop(known.uid, None)
            state.remove(known)
        if isinstance(obj, Pod) and (node := self._assumed.get(obj.uid)):
            if obj.node_name:
                del self._assumed[obj.uid]
            obj = obj.placed_on(obj.node_name or node)
        if event.verb is not Verb.DELETE:
            state.put(obj)
        state.deliver()

    async def compare(self, decision: ObservedDecision, event: Happened) -> None:
        """Ask about a decision that was made just before the event."""
        core = self.simulation.core
        state = self.simulation.state
        pod = state.get(Pod, decision.pod)
        if pod is None or pod.spec.scheduler_name not in core.profiles.frameworks:
            self.not_compared[OTHER_SCHEDULER] += 1
        elif pod.spec.scheduling_group is not None:
            self.not_compared[GROUPED] += 1
        else:
            opinion = await self._opinion(pod, decision.node)
            self.max_nodes = max(self.max_nodes, len(core.snapshot))
            outcome = _outcome(decision.node, opinion)
            self.outcomes[outcome] += 1
            if outcome != SAME and len(self.differences) < self.shown:
                self.differences.append(_difference(decision, event, opinion))
        if pod is not None and decision.node:
            self._assumed[pod.uid] = decision.node
            state.put(pod.placed_on(decision.node))
            state.deliver()

    async def _opinion(self, pod: Pod, node: str) -> OpinionNodes:
        core = self.simulation.core
        # The part of the nodes that was looked at there is not known: all are.
        search = NodeSearch(core.queue.nominator, Rotation())
        asked = await ask(core, core.profiles.frameworks[pod.spec.scheduler_name], pod, search)
        best = best_of(core, asked)
        names = tuple(name for name in (node, *best[:1]) if name)
        return OpinionNodes(best, {}, scores_of(core, asked, names))

    def found(self, file: str, source: str) -> ObservedReplay:
        """Everything up to now."""
        compared = self.outcomes.total()
        found = ObservedReplay(
            file=file,
            source=source,
            began=_text(self.began),
            ended=_text(self.ended),
            events=self.events,
            nodes=sum(1 for _ in self.simulation.state.all(Node)),
            compared=compared,
            different=compared - self.outcomes[SAME],
            outcomes=dict(self.outcomes),
            not_compared=dict(self.not_compared),
            differences=self.differences,
        )
        if self.outcomes[OTHER_NODE] and self.max_nodes > SAMPLED_NODES:
            looked_at = f"of {self.max_nodes} nodes a kube-scheduler looks at a part"
            found.warnings.append(f"{looked_at}: a better one may not be in it (percentageOfNodesToScore)")
        return found


def _outcome(node: str, opinion: OpinionNodes) -> str:
    if opinion.agrees(node):
        return SAME
    if not node:
        return A_NODE
    if not opinion.best:
        return NO_NODE
    return NO_FIT if opinion.scores[node].total is None else OTHER_NODE


def _difference(decision: ObservedDecision, event: Happened, opinion: OpinionNodes) -> ReplayDifference:
    best = opinion.best[0] if opinion.best else ""
    return ReplayDifference(
        span=event.number,
        at=_text(event.at),
        pod=decision.pod,
        recorded=f"placed on {decision.node}" if decision.node else "no node",
        now=f"placed on {best}" if best else "no node",
        recorded_node=decision.node,
        node=best,
        scores=dict(opinion.scores),
    )


def _text(at: datetime | None) -> str:
    return "" if at is None else at.isoformat(timespec="milliseconds")
