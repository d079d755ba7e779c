"""Answers by class of pod: what is known of the classes asked about last, within a bounded amount of memory.

    a pod --signature--> class --first pod--> nothing is kept
                               --second-----> kept answers, empty: every row is dirty
                               --further----> kept answers: rows that changed are dirty

Where memory is full, the class that was asked for longest ago goes, unless the new one was last asked for
even earlier: of more classes in turn than fit, those that are kept stay.

Source: docs/decisions/0008-equal-pods.md; pkg/scheduler/framework/runtime/batch.go (Kubernetes v1.36).
"""

from collections import Counter, OrderedDict

from berth.evaluation.answers import Answers
from berth.evaluation.signatures import Signature, Signatures
from berth.framework.attempt import Attempt
from berth.framework.runtime import Framework, PluginSet
from berth.snapshot.snapshot import Snapshot

MAX_BYTES = 64 << 20
MAX_REMEMBERED = 8192
"""So many classes are known to have been asked for that are not kept."""

REUSED, NEW, FIRST, FULL = "reused", "new", "first", "full"
OUTDATED, UNSIGNED = "outdated", "unsigned"
ANOTHER_TABLE = "table"
Key = tuple[str, Signature]


class KnownClasses:
    """What is known, for all profiles, of one snapshot."""

    def __init__(self, snapshot: Snapshot, max_bytes: int = MAX_BYTES) -> None:
        self.outcomes: Counter[str] = Counter()
        """How many cycles used what is known, and why the others did not."""
        self._snapshot = snapshot
        self._max_bytes = max_bytes
        self._bytes = 0
        self._asked: OrderedDict[Key, int] = OrderedDict()
        """In which cycle classes were asked for last that are not kept."""
        self._cycle = 0
        self._kept: OrderedDict[Key, tuple[Answers, int]] = OrderedDict()
        self._profiles: dict[str, tuple[PluginSet, Signatures]] = {}

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._bytes

    def answers(self, framework: Framework, attempt: Attempt) -> tuple[Key | None, Answers]:
        """What is known of the pod's class, and the key to keep it under; None where that is not to be."""
        signatures = self._profile(framework)
        if attempt.nodes is not self._snapshot or attempt.within is not None or not len(attempt.nodes):
            self.outcomes[ANOTHER_TABLE] += 1
            return None, Answers(signatures.plugins(attempt.pod))
        signature = signatures.of(attempt.pod)
        if signature is None:
            self.outcomes[UNSIGNED] += 1
            return None, Answers(signatures.plugins(attempt.pod))
        key = framework.profile_name, signature
        self._cycle += 1
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            kept[0].asked_in = self._cycle
            return key, kept[0]
        outcome = self._outcome_of_new(key)
        self.outcomes[outcome] += 1
        if outcome is not FIRST:
            return None, Answers(signature.plugins)
        answers = Answers(signature.plugins, kept=True)
        answers.asked_in = self._cycle
        return key, answers

    def _outcome_of_new(self, key: Key) -> str:
        """Whether answers are to be kept from now on (FIRST), and why not."""
        before = self._asked.pop(key, None)
        self._asked[key] = self._cycle
        if before is None:
            if len(self._asked) > MAX_REMEMBERED:
                self._asked.popitem(last=False)
            return NEW
        if self._kept:
            oldest, size = next(iter(self._kept.values()))
            if self._bytes + size > self._max_bytes and before < oldest.asked_in:
                return FULL
        return FIRST

    def _profile(self, framework: Framework) -> Signatures:
        known = self._profiles.get(framework.profile_name)
        if known is None or known[0] is not framework.plugins:
            for key in [key for key in self._kept if key[0] == framework.profile_name]:
                self.forget(key)
            known = framework.plugins, Signatures(framework.plugins)
            self._profiles[framework.profile_name] = known
        return known[1]

    def keep(self, key: Key, answers: Answers, *, reused: bool) -> None:
        """Keep what is known after a cycle, which may have `reused` what was known before it."""
        if reused and answers.size_known:
            self.outcomes[REUSED] += 1
            return
        before = 0
        if key in self._kept:
            self.outcomes[REUSED if reused else OUTDATED] += 1
            before = self._kept[key][1]
        if not (answers.kept and answers.known):
            self.forget(key)
            return
        size, answers.size_known = answers.size_bytes, True
        self._kept[key] = answers, size
        self._bytes += size - before
        while self._bytes > self._max_bytes:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= gone

    def outdated(self, key: Key) -> None:
        """What is known of the class could not be brought up to date."""
        self.outcomes[OUTDATED] += 1
        self.forget(key)

    def forget(self, key: Key) -> None:
        """Drop what is known of the class."""
        _, gone = self._kept.pop(key, (None, 0))
        self._bytes -= gone
