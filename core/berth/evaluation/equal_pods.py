"""The memory of questions: what is known of the last ones that pods asked, within a bounded amount of memory.

A pod is worked out from nothing where its answers cannot be proven to be those of an equal pod; `outcomes`
counts why.

Source: docs/decisions/0008-equal-pods.md; compare spec/core.md 4.16.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass

from berth.evaluation.kept import Kept
from berth.evaluation.line_up import LineUp, Positions
from berth.evaluation.remembered import Remembered
from berth.evaluation.signatures import MOST_REMEMBERED, Signature, Signatures
from berth.framework.attempt import Attempt
from berth.framework.runtime import Framework, PluginSet
from berth.snapshot.snapshot import Snapshot

MOST_BYTES = 64 << 20

REUSED, NEW, FIRST, OUTDATED, UNSIGNED = "reused", "new", "first", "outdated", "unsigned"
NOMINATED, ANOTHER_TABLE, NOWHERE = "nominated", "table", "nowhere"
Key = tuple[str, Signature]


@dataclass(slots=True)
class Question:
    """A pod's question, and what is remembered of it."""

    key: Key
    line_up: LineUp
    positions: Positions
    remembered: Remembered | None
    asked_before: bool
    """Whether it is worth remembering: a pod like no other is not."""


class EqualPods:
    """What is remembered, for all profiles, of one snapshot; what was asked for longest ago goes first."""

    def __init__(self, snapshot: Snapshot, most_bytes: int = MOST_BYTES) -> None:
        self.outcomes: Counter[str] = Counter()
        """How many cycles used what was remembered, and why the others did not."""
        self._snapshot = snapshot
        self._most_bytes = most_bytes
        self._bytes = 0
        self._asked: OrderedDict[Key, None] = OrderedDict()
        self._remembered: OrderedDict[Key, Remembered] = OrderedDict()
        self._profiles: dict[str, tuple[PluginSet, LineUp, Signatures]] = {}

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._bytes

    def question(self, framework: Framework, attempt: Attempt) -> Question | None:
        """The pod's question, None where it is to be worked out apart from all others."""
        part = attempt.nodes is not self._snapshot or attempt.within is not None
        if part or not len(attempt.nodes):
            self.outcomes[ANOTHER_TABLE] += 1
            return None
        if attempt.pod.nominated_node_name:
            self.outcomes[NOMINATED] += 1
            return None
        line_up, signatures = self._profile(framework)
        signature = signatures.of(attempt.pod)
        if signature is None:
            self.outcomes[UNSIGNED] += 1
            return None
        key = framework.profile_name, signature
        remembered = self._remembered.get(key)
        asked_before = self._asked_before(key)
        if remembered is None:
            self.outcomes[FIRST if asked_before else NEW] += 1
        else:
            self._remembered.move_to_end(key)
        return Question(key, line_up, line_up.positions(), remembered, asked_before)

    def _asked_before(self, key: Key) -> bool:
        if key in self._asked:
            return True
        self._asked[key] = None
        if len(self._asked) > MOST_REMEMBERED:
            self._asked.popitem(last=False)
        return False

    def _profile(self, framework: Framework) -> tuple[LineUp, Signatures]:
        known = self._profiles.get(framework.profile_name)
        if known is None or known[0] is not framework.plugins:
            self._forget_profile(framework.profile_name)
            line_up = LineUp(framework.plugins)
            signatures = Signatures(line_up.members)
            known = self._profiles[framework.profile_name] = framework.plugins, line_up, signatures
        return known[1], known[2]

    def reused(self) -> None:
        """A pod got its node by what was remembered."""
        self.outcomes[REUSED] += 1

    def nowhere(self) -> None:
        """By what is remembered no node fits; only the whole truth says why."""
        self.outcomes[NOWHERE] += 1

    def outdated(self, question: Question) -> None:
        """What was remembered could not be brought up to date."""
        self.outcomes[OUTDATED] += 1
        self.forget(question)

    def remember(self, question: Question, attempt: Attempt, kept: Kept) -> None:
        """Keep a cycle's answers; the plugins are asked what they hang on."""
        bases = question.line_up.bases(attempt)
        remembered = Remembered(question.line_up, attempt, kept, bases, question.positions)
        self.forget(question)
        self._remembered[question.key] = remembered
        self._bytes += remembered.size_bytes
        while self._bytes > self._most_bytes:
            _, oldest = self._remembered.popitem(last=False)
            self._bytes -= oldest.size_bytes

    def forget(self, question: Question) -> None:
        """Drop what is remembered of the question."""
        self._forget(question.key)

    def _forget_profile(self, name: str) -> None:
        for key in [key for key in self._remembered if key[0] == name]:
            self._forget(key)

    def _forget(self, key: Key) -> None:
        gone = self._remembered.pop(key, None)
        if gone is not None:
            self._bytes -= gone.size_bytes
