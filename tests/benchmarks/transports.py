"""The same plugin over ttrpc and over gRPC, asked in turns: what else goes on shows in both alike.

Each decision is worked out from nothing, without the plugin, with the same in this process, and with it
outside (`sidecar`). CPU is that of the threads of a process, so that what else runs shows less.
"""

import time
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from tests.benchmarks import sidecar
from tests.benchmarks.sidecar import OVER_GRPC, PYTHON_PLUGIN, turns, with_sidecars
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import read_pod

TRANSPORTS = {"ttrpc": PYTHON_PLUGIN, "gRPC": OVER_GRPC}
ROUNDS = 300


def run(options):
    """One table."""
    table = Table(
        f"one plugin in Python, {sidecar.NODES:,} nodes, filter and score, added to a decision",
        ["over", "p10 ms", "p50 ms", "p90 ms", "CPU of the scheduler, µs", "CPU of the plugin, µs"],
    )
    for over, figures in uvloop.run(measure(options.rounds or ROUNDS)).items():
        table.add(over, *figures)
    table.show()


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
            here, there = time.process_time(), cpu_seconds(self._pid)
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
