"""Asynchronous queueing hints: the questions to sidecars, and the events that their answers are about.

    worth() -- ASK --> HintQuestions --> SchedulingQueue.ask_hints --(other process)--> hints_answered

A question is about all the pods that an event is asked about, so that its cost for each of them is small.

Source: KEP-4247; docs/protocol.md "Hints".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from berth.framework.cluster_event import ClusterEvent
from berth.framework.queueing.queued_pod import QueuedPodInfo


class HintQuestion(NamedTuple):
    """One event for pods of one profile, each as it was rejected in one attempt."""

    plugin: str
    profile: str
    event: ClusterEvent
    old: Any
    new: Any
    records: list[QueuedPodInfo]
    attempts: list[int]
    """The attempt of each record, in the same order."""

    def standing(self) -> Iterator[QueuedPodInfo]:
        """The pods that still wait for want of that plugin's consent, in the same attempt."""
        plugin = self.plugin
        for record, attempt in zip(self.records, self.attempts, strict=True):
            if record.attempts == attempt and record.rejected_by(plugin):
                yield record

    def about(self, places: Iterable[int]) -> "HintQuestion":
        """The same question about the pods at those places."""
        records, attempts = self.records, self.attempts
        at = list(places)
        return self._replace(records=[records[i] for i in at], attempts=[attempts[i] for i in at])


class HintQuestions:
    """Questions that gather: one for each plugin, profile and event."""

    __slots__ = ("_latest", "_questions")

    def __init__(self) -> None:
        self._questions: list[HintQuestion] = []
        self._latest: dict[tuple[str, str], HintQuestion] = {}

    def __bool__(self) -> bool:
        return bool(self._questions)

    def __iter__(self) -> Iterator[HintQuestion]:
        return iter(self._questions)

    def add(
        self, plugin: str, event: ClusterEvent, old: Any, new: Any, records: Iterable[QueuedPodInfo]
    ) -> None:
        """Ask the plugin about pods of one profile."""
        asked = list(records)
        if not asked:
            return
        attempts = [record.attempts for record in asked]
        by = plugin, asked[0].pod.spec.scheduler_name
        latest = self._latest.get(by)
        if latest is not None and latest.event is event and latest.old is old and latest.new is new:
            latest.records.extend(asked)
            latest.attempts.extend(attempts)
            return
        question = self._latest[by] = HintQuestion(*by, event, old, new, asked, attempts)
        self._questions.append(question)

    def of_pending(self) -> "HintQuestions":
        """The questions to the plugins that left their pods pending, which may still end a backoff."""
        pending = HintQuestions()
        for plugin, _, event, old, new, records, _ in self._questions:
            pending.add(plugin, event, old, new, (r for r in records if plugin in r.pending_plugins))
        return pending

    def join(self, others: "HintQuestions") -> None:
        """Ask those, too."""
        for plugin, _, event, old, new, records, _ in others:
            self.add(plugin, event, old, new, records)


HintsAnswered = Callable[[Iterable[HintQuestion]], None]
"""Takes the questions whose answer is Queue, about the pods for which it is."""

HintAsker = Callable[[Sequence[HintQuestion], HintsAnswered], None]
"""Asks beside everything else; calls the function that it is given once there are answers."""


def queue_all(questions: Sequence[HintQuestion], answered: HintsAnswered) -> None:
    """Answer Queue to all of them: there is no sidecar to be asked."""
    answered(questions)
