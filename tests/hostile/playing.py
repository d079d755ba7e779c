"""A row played against real processes: what is written, for how long, and what came of it."""

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.hostile.arena import Arena, arena, cpu_seconds, cpu_wait_seconds
from tests.hostile.probes import Probes, resident_mebibytes

Document = Mapping[str, Any]
LOOK_SECONDS = 0.1
CLEARED_SECONDS = 60
"""How long what was written may take to go: the row is shown, whether it does or not."""


@dataclass(frozen=True, slots=True)
class Case:
    """One hostile deed: who does it, and how.

    `attack` writes; it may go on until it is cancelled. `objects` exist before the scheduler starts, and
    `prepare` may start a plugin and answers (configuration, flags) of the scheduler.
    """

    row: str
    who: str
    what: str
    attack: Callable[[Arena], Awaitable[None]]
    objects: Callable[[int], Iterable[Document]] = lambda _nodes: ()
    prepare: Callable[[Any], Any] | None = None
    max_nodes: int = 5_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What others noticed. Units: seconds, MiB.

    `cpu_seconds` are those of the scheduler while the row was played, of the last process where it ended;
    `cpu_wait_seconds` those in which it could have gone on, but others had the CPUs.
    """

    row: str
    what: str
    nodes: int
    livez_gap: float
    lease_gap: float
    binding_gap: float
    api_gap: float
    bound: int
    submitted: int
    mebibytes_before: float
    mebibytes_peak: float
    mebibytes_after: float
    log_mebibytes: float
    ends: int
    ended_in: float | None
    note: str
    longest_wait: float
    cpu_seconds: float
    cpu_wait_seconds: float
    holders: int
    charged: str


async def play(
    case, *, nodes, seconds, settle_seconds, each_second, patience_seconds=0.0, real=False, program=()
):
    """Play one row, and what came of it; up to `patience_seconds` more where pods of others wait.

    `program` is that of another scheduler than Berth, which has no plugins.
    """
    nodes = min(nodes, case.max_nodes)
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as folder:
        configuration, flags, stop = "", (), None
        if case.prepare is not None and not program:
            configuration, flags, stop = await case.prepare(folder)
        try:
            around = {"configuration": configuration, "flags": flags, "real": real, "program": program}
            async with arena(folder, nodes, objects=case.objects(nodes), **around) as made:
                return await _measured(case, made, each_second, seconds, patience_seconds, settle_seconds)
        finally:
            if stop is not None:
                await stop()


async def _measured(case, made, each_second, *seconds):
    attack_seconds, patience_seconds, settle_seconds = seconds
    tasks = [asyncio.create_task(made.ordinary_pods(each_second))]
    tasks.append(asyncio.create_task(made.keep_running()))
    await asyncio.sleep(3)
    probes = Probes(made)
    watching = asyncio.create_task(probes.watch())
    await asyncio.sleep(2)
    pid, before = made.scheduler.pid, cpu_of(made.scheduler.pid)
    attack = asyncio.create_task(case.attack(made))
    await asyncio.sleep(attack_seconds)
    cpu = cpu_of(made.scheduler.pid)
    if made.scheduler.pid == pid:
        cpu = tuple(now - then for now, then in zip(cpu, before, strict=True))
    submitted = frozenset(probes.submitted)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_seconds):
            while not submitted <= probes.bound:  # noqa: ASYNC110 - what a watch adds to
                await asyncio.sleep(LOOK_SECONDS)
    attack.cancel()
    with suppress(asyncio.CancelledError):
        try:
            await attack
        except Exception as error:  # noqa: BLE001 - the row is shown, and what became of its writer beside it
            made.notes["attack"] = f"{type(error).__name__}: {error}"
    gaps = [each.up_to_now() for each in (probes.health.gaps, probes.lease, probes.bindings, probes.api)]
    bound, logged = len(probes.bound & submitted), made.log_bytes - probes.log_before
    longest_wait = probes.longest_wait
    with suppress(TimeoutError):
        async with asyncio.timeout(CLEARED_SECONDS):
            await made.remove_written()
    await asyncio.sleep(settle_seconds)
    after = resident_mebibytes(made.scheduler.pid)
    for task in (*tasks, watching):
        task.cancel()
    await asyncio.gather(*tasks, watching, return_exceptions=True)
    ended_in = await made.end_scheduler()
    return Outcome(
        case.row,
        case.what,
        made.nodes,
        *gaps,
        bound=bound,
        submitted=len(submitted),
        mebibytes_before=probes.mebibytes_before,
        mebibytes_peak=probes.mebibytes_peak,
        mebibytes_after=after,
        log_mebibytes=logged / (1 << 20),
        ends=len(made.ends),
        ended_in=ended_in,
        note="; ".join([*made.notes.values(), *made.ends[:1]])[:400],
        longest_wait=longest_wait,
        cpu_seconds=cpu[0],
        cpu_wait_seconds=cpu[1],
        holders=len(probes.holders),
        charged=", ".join(sorted(charged(made.folder))),
    )


def cpu_of(pid):
    """What a process has used of the CPU, and waited for it."""
    return cpu_seconds(pid), cpu_wait_seconds(pid)


CHARGED = re.compile(r"(?:exceeded its budget\" pod=|more than a cycle's budget\" namespace=)\"([^/\"]+)")


def charged(folder):
    """The namespaces that the log says have used more than a cycle's budget."""
    logs = (file.read_text(errors="replace") for file in folder.glob("scheduler-*.log"))
    return {namespace for log in logs for namespace in CHARGED.findall(log)}
