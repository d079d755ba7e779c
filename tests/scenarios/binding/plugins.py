# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""PreBind and Permit plugins that stand still until a scenario lets them go."""

import asyncio

from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.interface import EnqueueExtensions, PreFlightResult
from berth.framework.status import SKIP, SUCCESS, Status
from tests.fakes import Permits, PreBinds
from tests.scenarios.kit.plugins import WAIT


class SlowPreBind(PreBinds):
    """Works until `finish` is called; `ended` says how."""

    def __init__(self, name="Slow", status=SUCCESS, **options):
        super().__init__(name, status, **options)
        self._gate = asyncio.Event()
        self.ended = ""

    def finish(self):
        """Let it come to its end."""
        self._gate.set()

    async def pre_bind(self, state, pod, node_name):
        self.note("pre_bind")
        try:
            await self._gate.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "finished"
        return self.status


class Nothing(PreBinds):
    """Has nothing to do before a binding; `before` is called when it is asked."""

    before = staticmethod(lambda: None)

    def pre_bind_pre_flight(self, state, pod, node_name):
        self.note("pre_flight")
        self.before()
        return PreFlightResult(SKIP, self.parallel)


class Waits(Permits, EnqueueExtensions):
    """A Permit plugin that lets every pod wait, and has said which events may change its mind."""

    def __init__(self, hints):
        super().__init__("Waits", Status(WAIT.code), 600.0)
        self.hints = hints

    def events_to_register(self):
        return [
            ClusterEventWithHint(event, lambda *_, answer=answer: answer)
            for event, answer in self.hints.items()
        ]


def waits(name="Waits", seconds=600.0, calls=None) -> Permits:
    """A Permit plugin that lets every pod wait."""
    return Permits(name, Status(WAIT.code), seconds, calls)
