"""What another configuration would have decided at each decision of a recording.

    recorded core, before a cycle --the same cluster and nominations--> plugins of the other configuration
                                                                              |
               recorded node among the best? <--------------------------------+

Each decision is compared by itself: the core continues as recorded, so one difference does not cause
the next.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from berth.config.loading import LoadedConfig
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.scheduler.scheduler import Scheduler
from berth.simulation.recordings.playing import at_once
from berth.simulation.running.scores import NodeScore, ScoredPod, ask, scores_of


class OpinionNodes(NamedTuple):
    """The nodes of which one would be chosen at random; none where the pod fits nowhere."""

    best: tuple[str, ...]
    recorded_scores: Mapping[str, NodeScore]
    """What the recorded node and the best one score with the recorded configuration."""
    scores: Mapping[str, NodeScore]
    """The same with the other one."""

    def agrees(self, node: str) -> bool:
        """Whether it may take that node, "" standing for none."""
        return node in self.best if node else not self.best


class SecondOpinion:
    """The profiles of another configuration, applied to a core that is replayed."""

    def __init__(self, core: Scheduler, loaded: LoadedConfig) -> None:
        """Make the plugins. Raises: BuildError."""
        self._core = core
        self._percentage = loaded.configuration.percentage_of_nodes_to_score
        handles = core.handles
        first = next(iter(handles.values()))
        self._frameworks = build_frameworks(
            loaded.profiles, IN_TREE, lambda profile: handles.get(profile, first)
        )

    def of(self, pod: Pod, node: str) -> OpinionNodes:
        """The opinion on a popped pod that was put on that node; "" stands for none."""
        framework = self._frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            gone = NodeScore(message=f"no profile {pod.spec.scheduler_name}")
            return OpinionNodes((), {}, {node: gone} if node else {})
        asked = self._asked(framework, pod)
        best = best_of(self._core, asked)
        names = tuple(name for name in (node, *best[:1]) if name)
        agreed = OpinionNodes(best, {}, {})
        if agreed.agrees(node):
            return agreed
        # Read before the plugins are asked again: the arrays are not ours to keep.
        scores = scores_of(self._core, asked, names)
        return OpinionNodes(best, self._recorded(pod, names), scores)

    def _recorded(self, pod: Pod, names: Collection[str]) -> Mapping[str, NodeScore]:
        framework = self._core.profiles.frameworks[pod.spec.scheduler_name]
        return scores_of(self._core, self._asked(framework, pod), names)

    def _asked(self, framework: Framework, pod: Pod) -> ScoredPod:
        # A sample begins where the recorded search began.
        rotation = Rotation(self._core.schedule_one.algorithm.search.rotation.start)
        search = NodeSearch(self._core.queue.nominator, rotation, self._percentage)
        # The recorded cycle is to read the clock as often as it did, which it does as often as it works.
        self._core.cache.update_snapshot(self._core.snapshot)
        with self._core.snapshot.with_answers_apart():
            return at_once(ask(self._core, framework, pod, search))


def best_of(core: Scheduler, asked: ScoredPod) -> tuple[str, ...]:
    """The nodes of the highest score; before anything changes in the core."""
    scores = asked.scores
    if scores is None or not scores.rows.size:
        return ()
    rows = scores.rows[scores.totals == scores.totals.max()]
    return tuple(core.snapshot.names[row] for row in rows.tolist())
