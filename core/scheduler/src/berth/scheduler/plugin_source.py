"""Where a scheduler gets its plugins from: this process here, others in out_of_tree_plugins.py."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from berth.cache.cache import Cache
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.framework.extender import Extender
from berth.framework.handle import WaitingPods
from berth.profiles.profile_builder import PluginFactory
from berth.queue.requeueing.hint_questions import HintQuestion, HintsAnswered, queue_all
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot


class SchedulerParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a scheduler that sidecars follow for as long as it runs.

    `rewire` is called with a profile whose plugins wait for other events than before, `wake` to have
    `PluginSource.ask_ahead` called once no pod is ready.
    """

    cache: Cache
    snapshot: Snapshot
    answers: EquivalenceCache
    queue: SchedulingQueue
    waiting_pods: WaitingPods
    rewire: Callable[[str], None]
    wake: Callable[[], None]


class PluginSource(Protocol):
    """Makes plugins for the parts of one scheduler."""

    @property
    def extenders(self) -> Sequence[Extender]:
        """Those of the configuration, in calling order."""

    def ask_hints(self, questions: Sequence[HintQuestion], answered: HintsAnswered) -> None:
        """Ask sidecars whether events may help the pods that they rejected."""

    def ask_ahead(self) -> None:
        """Ask sidecars what the next pods need to know; called while there is none."""

    def factories(self, parts: SchedulerParts) -> Mapping[str, PluginFactory]:
        """What makes each plugin, by name. Called once."""


class InProcessPlugins(msgspec.Struct, frozen=True):
    """Plugins of this process, and extenders."""

    by_name: Mapping[str, PluginFactory]
    extenders: Sequence[Extender] = ()

    def ask_hints(self, questions: Sequence[HintQuestion], answered: HintsAnswered) -> None:
        """Answer Queue to all of them: no plugin here leaves its hints open."""
        queue_all(questions, answered)

    def ask_ahead(self) -> None:
        """Do nothing: plugins here are asked at a pod's turn."""

    def factories(self, parts: SchedulerParts) -> Mapping[str, PluginFactory]:
        """The plugins, which reach the parts of the scheduler by their Handle alone."""
        del parts
        return self.by_name
