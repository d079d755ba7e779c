"""Plugins that announce the clock, and live by the machine's time."""

# ruff: noqa: ARG002 - the SDK gives the methods their parameters

import asyncio
import time

import numpy as np

from tests.unit.conformance.broken import Fault
from tests.unit.conformance.reference import Slots


async def a_second_late(_server, stream, request):
    """Say that another time is held."""
    response = await stream.answer(request)
    if request.WhichOneof("body") == "time":
        response.time_reached.unix_micros += 1_000_000
    return response


class ReadsTheMachines(Slots):
    """Likes nodes less, the later it is by the machine's clock."""

    def score_nodes(self, pod, nodes):
        return np.full(len(nodes), int(time.monotonic()) % 50, np.int64)


class WaitsByTheMachines(Slots):
    """Has pods tried again half a second after it was asked about one."""

    def filter_nodes(self, pod, nodes):
        asyncio.get_running_loop().call_later(0.5, self.requeue.all_rejected, "half a second later")
        return super().filter_nodes(pod, nodes)


FAULTS = {
    "time/reached": Fault(take=a_second_late),
    "time/answers": Fault(plugin=ReadsTheMachines),
    "time/timers": Fault(plugin=WaitsByTheMachines),
}
