"""The scheduler's CPU for a decision that asks a plugin, and what of it the way to another process takes."""

import asyncio
import gc
import time

import uvloop

from berth.out_of_tree.transport.ttrpc import Answer
from tests.benchmarks.sidecar import with_own_classes, with_sidecars
from tests.benchmarks.sidecar_commands import PYTHON_PLUGIN
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import pod_template, read_pod

KINDS = 500
WARM_UP = 1_200
PAUSE_SECONDS = 0.001
"""Other work comes between two decisions, and so does what the loop has to do."""


class Answers:
    """Stands before the plugin: FilterScore has its answer, or its last one while that is `at_hand`."""

    def __init__(self, connection):
        self.at_hand = False
        self._last = None
        stub = connection.stub("FilterScore")
        self._ask, self._holds = stub.FilterScore, connection.holds
        self._loop = asyncio.get_running_loop()
        stub.FilterScore, connection.holds = self.ask, self.holds

    @property
    def known(self):
        """Whether there is a last one."""
        return self._last is not None

    def ask(self, request, *, timeout, metadata=()):
        if not self.at_hand:
            asked = self._ask(request, timeout=timeout, metadata=metadata)
            asked.add_done_callback(self._remember)
            return asked
        again = type(self._last)()
        again.CopyFrom(self._last)
        again.filter.generation = request.call.generation
        answer = Answer(loop=self._loop)
        answer.set_result(again)
        return answer

    def holds(self, generation):
        """What was not sent is not held."""
        if not self.at_hand:
            self._holds(generation)

    def _remember(self, asked):
        self._last = asked.result()


def run(options):
    uvloop.run(measure(options.rounds or 600)).show()


async def measure(rounds):
    """A table of three ways in turns: no plugin, its answers at hand, and its answers over the socket."""
    table = Table(
        "the scheduler's CPU for a decision with a question about all of 5,000 nodes, plugin in Python, us",
        ["", "p10", "p50", "beyond the line above p50"],
    )
    taken = {}
    async with with_sidecars(1, PYTHON_PLUGIN) as (core, host, _):
        [connection] = host.connections.values()
        async for way, microseconds in in_turns(core, host, Answers(connection), rounds):
            taken.setdefault(way, []).append(microseconds)
    before = None
    for way, samples in taken.items():
        low, middle = quantiles(samples, 0.1, 0.5)
        table.add(way, low, middle, "" if before is None else middle - before)
        before = middle
    return table


async def in_turns(core, host, answers, rounds):
    """The decisions' CPU microseconds; each pod is assumed, so that each question has a step of the state."""
    frameworks = {
        "no plugin": core.default_profile(),
        "its answer at hand": core.framework,
        "over its socket": core.framework,
    }
    parts = with_own_classes(core, frameworks)
    template, decode = pod_template(), host.pods.decoding(read_pod)
    gc.collect()
    gc.freeze()
    for i in range(3 * (WARM_UP + rounds)):
        way = list(parts)[i % 3]
        core.framework, core.algorithm = parts[way]
        answers.at_hand = way == "its answer at hand" and answers.known
        pod = decode(template.bytes(i // 3 % KINDS + 1, i + 1))
        await asyncio.sleep(PAUSE_SECONDS)
        started = time.thread_time()
        core.cache.update_snapshot(core.snapshot)
        decision = await core.decide(pod)
        used = time.thread_time() - started
        assert decision.status.ok, decision.status.message
        core.cache.assume_pod(pod.placed_on(decision.node_name))
        if i >= 3 * WARM_UP:
            yield way, used * 1e6
    gc.unfreeze()
