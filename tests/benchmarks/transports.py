"""The same plugin over ttrpc and over gRPC, asked in turns: what else goes on shows in both alike.

First the question alone, one after the other, each with a step of the state: both processes are warm.
Then as part of a decision that is worked out from nothing, beside one without the plugin (`sidecar`). CPU is
that of the threads of a process, so that what else runs shows less.
"""

import gc
import time
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import uvloop

from berth.framework.attempts.cycle_state import CycleState
from tests.benchmarks import sidecar
from tests.benchmarks.sidecar import turns, with_sidecars
from tests.benchmarks.sidecar_commands import OVER_GRPC, PYTHON_PLUGIN
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import pod_template, read_pod

TRANSPORTS = {"ttrpc": PYTHON_PLUGIN, "gRPC": OVER_GRPC}
ROUNDS = 300
TOGETHER = 50
WARM_UP = 100


COLUMNS = ("over", "p10 ms", "p50 ms", "p90 ms", "CPU of the scheduler, µs", "CPU of the plugin, µs")


def run(options):
    """Two tables."""
    about = f"one plugin in Python, {sidecar.NODES:,} nodes, filter and score"
    for what, measured in (("asked by itself", alone), ("added to a decision", measure)):
        table = Table(f"{about}, {what}", COLUMNS)
        for over, figures in uvloop.run(measured(options.rounds or ROUNDS)).items():
            table.add(over, *figures)
        table.show()


async def alone(rounds):
    """What a question takes by itself, by transport."""
    async with AsyncExitStack() as until_the_end:
        questions, taken = {}, {name: [] for name in TRANSPORTS}
        for name, command in TRANSPORTS.items():
            core, host, [pid] = await until_the_end.enter_async_context(with_sidecars(1, command))
            questions[name] = pid, Asking(core, host)
        gc.collect()
        gc.freeze()
        for _ in range(0, WARM_UP + rounds, TOGETHER):
            for name, (pid, asking) in questions.items():
                for _ in range(TOGETHER):
                    asking.step()
                    there, here, began = cpu_seconds(pid), time.process_time(), time.perf_counter()
                    await asking.ask()
                    wall = time.perf_counter() - began
                    taken[name].append((wall, time.process_time() - here, cpu_seconds(pid) - there))
        gc.unfreeze()
    return {name: in_units(*zip(*samples[WARM_UP:], strict=True)) for name, samples in taken.items()}


class Asking:
    """Asks about one pod after the other, each assumed before the next."""

    def __init__(self, core, host):
        self._core = core
        self._decode, self._template = host.pods.decoding(read_pod), pod_template()
        [self._plugin] = host.plugins.values()
        self._numbers = count(1)
        self._pod = None

    def step(self):
        """Let there be another pod, and the one before it be assumed."""
        core = self._core
        if self._pod is not None:
            core.cache.assume_pod(self._pod.placed_on(core.snapshot.names[1]))
        self._pod = self._decode(self._template.bytes(next(self._numbers)))
        core.cache.update_snapshot(core.snapshot)

    async def ask(self):
        """Have its verdicts and scores."""
        state = CycleState()
        await self._plugin.filter(state, self._pod, self._core.snapshot)
        self._plugin.score(state, self._pod, self._core.snapshot)


def in_units(wall, here, there):
    """Milliseconds at p10, p50 and p90, microseconds of CPU at p50."""
    milliseconds = [seconds * 1e3 for seconds in quantiles(wall, 0.1, 0.5, 0.9)]
    return *milliseconds, *(quantiles(each, 0.5)[0] * 1e6 for each in (here, there))


async def measure(rounds):
    """What is added, by transport."""
    async with AsyncExitStack() as until_the_end:
        runs = {}
        for name, command in TRANSPORTS.items():
            core, host, [pid] = await until_the_end.enter_async_context(with_sidecars(1, command))
            runs[name] = Run(pid, turns(core, rounds, host.pods.decoding(read_pod)))
        for _ in range(rounds):
            for each in runs.values():
                await each.three_turns()
        return {name: each.added() for name, each in runs.items()}


class Run:
    """One transport's turns."""

    def __init__(self, pid, decisions):
        self._pid = pid
        self._decisions = decisions
        self._seconds = {"none": [], "inside": [], "outside": []}
        self._here = {"none": [], "inside": [], "outside": []}
        self._there = []

    async def three_turns(self):
        """A decision of each kind."""
        for _ in range(3):
            there, here = cpu_seconds(self._pid), time.process_time()
            which, seconds = await anext(self._decisions)
            self._seconds[which].append(seconds)
            self._here[which].append(time.process_time() - here)
            if which == "outside":
                self._there.append(cpu_seconds(self._pid) - there)

    def added(self):
        """Milliseconds at p10, p50 and p90, microseconds of CPU here and there at p50."""
        places = 0.1, 0.5, 0.9
        outside, none = (quantiles(self._seconds[which], *places) for which in ("outside", "none"))
        here = quantiles(self._here["outside"], 0.5)[0] - quantiles(self._here["none"], 0.5)[0]
        there = quantiles(self._there, 0.5)[0]
        return (
            *((more - less) * 1e3 for more, less in zip(outside, none, strict=True)),
            here * 1e6,
            there * 1e6,
        )


def cpu_seconds(pid):
    """What all threads of a process have run."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
