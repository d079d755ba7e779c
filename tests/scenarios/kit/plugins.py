# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Plugins that a scenario steers while the scheduler runs."""

import numpy as np

from berth.framework.cluster_event import ClusterEventWithHint, QueueingHint
from berth.framework.interface import EnqueueExtensions, FilterPlugin, PreEnqueuePlugin
from berth.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from tests.fakes import Named
from tests.unit.queue.kit import GATES_GONE, NODE_ADD

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
PENDING = Status(Code.PENDING, ("not yet",))
WAIT = Status(Code.WAIT)


class Doorkeeper(Named, FilterPlugin, EnqueueExtensions):
    """Turns every node down while it has a status to give: for all pods, or by pod name; an exception breaks.

    `hints` says what it answers to which event, or is asked with (pod, old, new); what it was
    asked is in `heard`. `during` is called in the middle of each cycle, with the pod in flight.
    """

    def __init__(self, name="A", hints=None, status=None):
        super().__init__(name)
        self.hints = {NODE_ADD: QUEUE} if hints is None else hints
        self.status = unschedulable(f"{name} is shut") if status is None else status
        self.during = lambda _pod: None
        self.heard = []

    def open(self):
        """Let every pod pass from now on."""
        self.status = SUCCESS

    def filter(self, state, pod, nodes):
        self.note("filter")
        self.during(pod)
        self._answer = self.status.get(pod.name, SUCCESS) if isinstance(self.status, dict) else self.status
        if isinstance(self._answer, Exception):
            raise self._answer
        return np.full(len(nodes), 0 if self._answer.ok else 1, dtype=np.uint8)

    def filter_status(self, state, code):
        return self._answer.from_plugin(self.name)

    def events_to_register(self):
        return [
            ClusterEventWithHint(event, self._hint(event, answer)) for event, answer in self.hints.items()
        ]

    def _hint(self, event, answer):
        def hint(pod, old, new):
            self.heard.append((event.label, pod.name))
            return answer(pod, old, new) if callable(answer) else answer

        return None if answer is None else hint


class Gate(Named, PreEnqueuePlugin, EnqueueExtensions):
    """Keeps the pods out that are named in `shut`; by default it opens as the pod's scheduling gates go."""

    def __init__(self, name="Gate", *shut, hints=None):
        super().__init__(name)
        self.shut = set(shut)
        self.status = unresolvable(f"{name} is shut")
        self.hints = {GATES_GONE: QUEUE} if hints is None else hints

    def pre_enqueue(self, pod):
        self.note(pod.name)
        if pod.name not in self.shut:
            return SUCCESS
        if isinstance(self.status, Exception):
            raise self.status
        return self.status

    def events_to_register(self):
        return [
            ClusterEventWithHint(event, None if answer is None else lambda *_, answer=answer: answer)
            for event, answer in self.hints.items()
        ]
