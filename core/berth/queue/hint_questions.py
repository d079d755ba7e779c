"""Hints that the queue cannot have at once: what sidecars are asked, and what its answer is an answer to.

    worth() -- ASK --> HintQuestion --> SchedulingQueue.ask_hints --(other process)--> hints_answered

Source: KEP-4247; docs/protocol.md "Hints".
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from berth.framework.cluster_event import ClusterEvent
from berth.framework.queued_pod import QueuedPodInfo


class HintQuestion(NamedTuple):
    """One event for one pod, as it was rejected in one attempt."""

    plugin: str
    event: ClusterEvent
    old: Any
    new: Any
    record: QueuedPodInfo
    attempt: int

    @property
    def stands(self) -> bool:
        """Whether the pod still waits for want of that plugin's consent, in the same attempt."""
        return self.record.attempts == self.attempt and self.plugin in self.record.rejectors


HintsAnswered = Callable[[Iterable[HintQuestion]], None]
"""Takes the questions whose answer is Queue."""

HintAsker = Callable[[Sequence[HintQuestion], HintsAnswered], None]
"""Asks beside everything else; calls the function that it is given once there are answers."""


def queue_all(questions: Sequence[HintQuestion], answered: HintsAnswered) -> None:
    """Answer Queue to all of them: there is no plugin in another process to be asked."""
    answered(questions)
