"""A steady state: pods are created, deleted once they are all scheduled, and created again, for some time.

Source: test/integration/scheduler_perf/executor.go createPodsSteadily (Kubernetes v1.36.2).
"""

import asyncio
from contextlib import suppress

from berth.client.resources import PODS
from tests.scheduler_perf.errors import PerfError

AT_ONCE = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
}


async def create_steadily(play, namespace, batch, seconds):
    """Keep so many pods coming and going. Raises: PerfError where none was scheduled."""
    scheduled = asyncio.Semaphore(0)
    total = 0

    def follow(before, after):
        nonlocal total
        known = before is not None and before.scheduled
        if after and after.metadata.namespace == namespace and after.scheduled and not known:
            total += 1
            scheduled.release()

    play.watch.followers.append(follow)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                await batch.create()
                for _ in range(batch.count):
                    await scheduled.acquire()
                await play.requests.delete_all(PODS, namespace, options=AT_ONCE)
    play.watch.followers.remove(follow)
    if not total:
        raise PerfError(f"no pod of namespace {namespace} was scheduled in {seconds:g} s: give it longer")
