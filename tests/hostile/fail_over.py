"""The leader is killed beside a row's objects: how long until a standby binds a pod of a quiet namespace.

The standby is started once the objects are there, so that it has to list them. The lease is not given back:
its 15 seconds have to run out first, for any scheduler.
"""

import asyncio
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass

from tests.hostile.arena import arena
from tests.hostile.playing import charged
from tests.hostile.probes import Probes
from tests.suite import PATIENCE_SECONDS

BEFORE_SECONDS, OBJECTS_SECONDS = 3.0, 5.0
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What came of it. Units: seconds; `bound_after` is None where no pod was bound in time."""

    ready_after: float
    """From the standby's start to its being ready."""
    led_after: float | None
    """From the kill to the lease's next holder."""
    bound_after: float | None
    """From the kill to the first binding of a pod of others that came later than that."""
    charged: str


async def take_over(case, *, nodes, each_second, real, program=()):
    """Play the row with a leader that is killed."""
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as folder:
        configuration, flags, stop = "", (), None
        if case.prepare is not None and not program:
            configuration, flags, stop = await case.prepare(folder)
        try:
            around = {"configuration": configuration, "flags": flags, "real": real, "program": program}
            nodes = min(nodes, case.max_nodes)
            async with arena(folder, nodes, objects=case.objects(nodes), **around) as made:
                return await _killed(case, made, each_second)
        finally:
            if stop is not None:
                await stop()


async def _killed(case, made, each_second):
    probes = Probes(made)
    tasks = [asyncio.create_task(made.ordinary_pods(each_second)), asyncio.create_task(probes.watch())]
    try:
        await asyncio.sleep(BEFORE_SECONDS)
        tasks.append(asyncio.create_task(case.attack(made)))
        await asyncio.sleep(OBJECTS_SECONDS)
        holders, began = set(probes.holders), time.monotonic()
        await made.take_over()
        killed = time.monotonic()
        led = await _until(lambda: probes.holders - holders)
        bound = await _until(lambda: any(probes.submitted[name] >= killed for name in probes.bound))
        after = [None if at is None else at - killed for at in (led, bound)]
        return TakeOver(killed - began, *after, ", ".join(sorted(charged(made.folder))))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await made.remove_written()


async def _until(happened):
    """When it happened, by the monotonic clock; None where it did not in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened():  # noqa: ASYNC110 - what a watch adds to
                await asyncio.sleep(LOOK_SECONDS)
            return time.monotonic()
    return None
