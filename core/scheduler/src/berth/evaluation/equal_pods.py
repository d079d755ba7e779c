"""How many pods of one class each node takes, without trying one after the other.

Groups of equal pods are counted so in all of their placements at once: by the rows that the class passes,
from the equivalence cache, and by the `room` that each Filter plugin sees there.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from berth.evaluation.caching.cached_evaluation import CachedEvaluation, StartOverError
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.find_nodes import NodeSearch
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import FitError
from berth.framework.runtime import Framework
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Ints, Mask


class EqualPods(msgspec.Struct, frozen=True):
    """Counts pods of a class on the cache's snapshot."""

    search: NodeSearch
    cache: EquivalenceCache

    def countable(self, framework: Framework, pods: Iterable[Pod]) -> bool:
        """Whether the pods are of one class, and none is kept from a node by more than Filter plugins.

        Extenders and nominated pods do so, and a search that ends once enough nodes were found.
        """
        if framework.extenders or self.search.nominated.any() or self.search.samples(framework):
            return False
        return self.cache.alike(framework, pods)

    async def room(self, framework: Framework, attempt: Attempt, most: int) -> Ints | None:
        """How many pods like the attempt's fit beside each other on each node, at most `most`.

        None where a plugin cannot say. The attempt is of one of these pods, and about all rows.
        Shapes: result int64 (n,). Raises: OverBudgetError.
        """
        key, evaluation = self.cache.lookup(framework, attempt)
        try:
            fits = await self._passed(framework, attempt, evaluation)
        except BaseException as error:
            if key is not None:
                self.cache.drop(key)
            if isinstance(error, StartOverError):
                return None
            raise
        if fits is None:
            return None
        if key is not None:
            self.cache.store(key, evaluation, reused=evaluation.known)
        return _room(evaluation, attempt, fits, most)

    async def _passed(
        self, framework: Framework, attempt: Attempt, evaluation: CachedEvaluation
    ) -> Mask | None:
        """The rows that the pod fits on; None where that broke."""
        found = await self.search.find(framework, attempt, evaluation)
        if not isinstance(found, Status):
            evaluation.end(attempt)
            return found.mask
        if not isinstance(found.error, FitError):
            return None
        evaluation.end(attempt)
        return np.zeros(len(attempt.nodes), dtype=bool)


def _room(evaluation: CachedEvaluation, attempt: Attempt, fits: Mask, most: int) -> Ints | None:
    room = np.full(len(attempt.nodes), most, dtype=np.int64)
    for _, plugin in evaluation.plugins.filters:
        if plugin.name in attempt.state.skip_filter:
            continue
        beside = plugin.room(attempt.state, attempt.pod, attempt.nodes, most)
        if beside is None:
            return None
        np.minimum(room, beside, out=room)
    return np.where(fits, room, 0)
