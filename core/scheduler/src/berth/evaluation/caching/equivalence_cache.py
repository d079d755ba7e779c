"""The equivalence cache: what plugins answered about pods that they sign alike, by row of the snapshot.

    a pod --signature--> class --first pod--> not cached
                               --second-----> a new entry: every row is dirty
                               --further----> the entry: rows that changed are dirty

An entry of a class has the merged results of all cacheable plugins (`CachedEvaluation`). Answers that take a
round trip are kept by plugin, too, so that classes which the plugin does not tell apart share them
(`PluginColumns`).

Eviction is LRU by bytes, with one exception: a class that was last used before the least recently used entry
is not admitted. So where more classes come in turn than fit, those that are cached stay cached.

Source: docs/decisions/0008-equal-pods.md; pkg/scheduler/framework/runtime/batch.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Iterable

from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.plugin_columns import PluginColumns
from berth.evaluation.caching.signatures import Signature, Signatures
from berth.framework.attempts.attempt import Attempt
from berth.framework.runtime import Framework, ProfilePlugins
from berth.objects.pods.pod import Pod
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.snapshot import Snapshot

MAX_BYTES = 64 << 20
MAX_REMEMBERED = 8192
"""Max classes without an entry whose last use is remembered."""

REUSED, NEW, FIRST, FULL = "reused", "new", "first", "full"
OUTDATED, UNSIGNED = "outdated", "unsigned"
ANOTHER_TABLE = "table"
Key = tuple[str, Signature]


class EquivalenceCache:
    """The cache of all profiles over one snapshot."""

    def __init__(self, snapshot: Snapshot, max_bytes: int = MAX_BYTES) -> None:
        self.outcomes: Counter[str] = Counter()
        """Cycles by what the lookup found: the label values of berth_equal_pods_total."""
        self._snapshot = snapshot
        self._last_use: BoundedCache[Key, int] = BoundedCache(max_entries=MAX_REMEMBERED)
        """The last cycle that looked a class up, for classes without an entry."""
        self._cycle = 0
        self._entries: BoundedCache[Key, CachedEvaluation] = BoundedCache(max_bytes)
        self._columns: dict[tuple[str, str], PluginColumns] = {}
        self._profiles: dict[str, tuple[ProfilePlugins, Signatures]] = {}

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._entries.size_bytes + sum(columns.size_bytes for columns in self._columns.values())

    def columns(self, profile: str, plugin: str) -> PluginColumns:
        """The columns of a remote plugin in a profile, which have a bound of their own."""
        known = self._columns.get((profile, plugin))
        if known is None:
            known = self._columns[profile, plugin] = PluginColumns(self._snapshot)
        return known

    def drop_columns(self, profile: str, plugin: str) -> None:
        """Drop the columns of a plugin that the profile has no more."""
        self._columns.pop((profile, plugin), None)

    def lookup(self, framework: Framework, attempt: Attempt) -> tuple[Key | None, CachedEvaluation]:
        """The evaluation to use for the pod, and its key; a None key means that it is not to be cached."""
        signatures = self._profile(framework)
        if attempt.nodes is not self._snapshot or not len(attempt.nodes) or _of_a_part(attempt, signatures):
            self.outcomes[ANOTHER_TABLE] += 1
            return None, CachedEvaluation(signatures.plugins(attempt.pod))
        signature = signatures.of(attempt.pod)
        if signature is None:
            self.outcomes[UNSIGNED] += 1
            return None, CachedEvaluation(signatures.plugins(attempt.pod))
        key = framework.profile_name, signature
        self._cycle += 1
        kept = self._entries.get(key)
        if kept is not None:
            kept.asked_in = self._cycle
            return key, kept
        outcome = self._outcome_of_new(key)
        self.outcomes[outcome] += 1
        if outcome is not FIRST:
            return None, CachedEvaluation(signature.plugins)
        evaluation = CachedEvaluation(signature.plugins, kept=True)
        evaluation.asked_in = self._cycle
        return key, evaluation

    def alike(self, framework: Framework, pods: Iterable[Pod]) -> bool:
        """Whether all of them are of one class."""
        signatures = self._profile(framework)
        found = {signatures.of(pod) for pod in pods}
        return len(found) == 1 and None not in found

    def _outcome_of_new(self, key: Key) -> str:
        """Whether the class gets an entry from now on (FIRST), or why not (NEW, FULL)."""
        before = self._last_use.peek(key)
        self._last_use.put(key, self._cycle)
        if before is None:
            return NEW
        oldest = self._entries.oldest()
        if oldest is not None:
            evaluation, size = oldest
            if self._entries.size_bytes + size > self._entries.max_bytes and before < evaluation.asked_in:
                return FULL
        return FIRST

    def _profile(self, framework: Framework) -> Signatures:
        known = self._profiles.get(framework.profile_name)
        if known is None or known[0] is not framework.plugins:
            for key in [key for key in self._entries if key[0] == framework.profile_name]:
                self.drop(key)
            known = framework.plugins, Signatures(framework.plugins)
            self._profiles[framework.profile_name] = known
        return known[1]

    def store(self, key: Key, evaluation: CachedEvaluation, *, reused: bool) -> None:
        """Store the evaluation after a cycle, which may have `reused` the entry."""
        if reused and evaluation.size_known:
            self.outcomes[REUSED] += 1
            return
        if key in self._entries:
            self.outcomes[REUSED if reused else OUTDATED] += 1
        if not (evaluation.kept and evaluation.known):
            self.drop(key)
            return
        evaluation.size_known = True
        self._entries.put(key, evaluation, evaluation.size_bytes)

    def drop_outdated(self, key: Key) -> None:
        """Drop an entry that could not be refreshed."""
        self.outcomes[OUTDATED] += 1
        self.drop(key)

    def drop(self, key: Key) -> None:
        """Drop the class's entry, if it has one."""
        self._entries.drop(key)


def _of_a_part(attempt: Attempt, signatures: Signatures) -> bool:
    """Whether the answers for all rows are no use to the attempt: sidecars are asked about its own alone."""
    return attempt.within is not None and bool(signatures.plugins(attempt.pod).in_sidecars)
