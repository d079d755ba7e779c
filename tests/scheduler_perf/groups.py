"""Groups of pods, and waiting until all of them are there.

Upstream waits until the scheduler's informer shows them, in one process with it. A scheduler of its own that
sees a pod before its group has the pod wait for it.

Source: test/integration/scheduler_perf/operations.go waitForPodGroups (Kubernetes master, 1.38).
"""

import asyncio

from berth.client.errors import NotFoundError
from berth.client.resources import POD_GROUPS, in_each_version
from tests.scheduler_perf.errors import PerfError
from tests.scheduler_perf.requests import many
from tests.scheduler_perf.templates import ObjectTemplate

POLL_SECONDS = 0.1


async def create_groups(requests, operation):
    """Create an operation's groups. Raises: ClientError."""
    template = ObjectTemplate(operation["templatePath"], operation["templateParams"])
    count, namespace = operation["count"] or 0, operation["namespace"]

    async def create(index):
        document = template.document(index, count)
        await requests.create(await requests.kind(document), namespace, document)

    await many(count, create)


async def wait_for_groups(requests, operation, timeout_seconds):
    """Wait until the namespace has this many PodGroups. Raises: PerfError; ClientError."""
    wanted = operation["count"] or 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while await _there(requests, operation["namespace"]) < wanted:  # noqa: ASYNC110 - a server has them
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise PerfError(
            f"{operation.place}: {wanted} PodGroups are not there after {timeout_seconds:g} s"
        ) from None


async def _there(requests, namespace):
    for resource in in_each_version(POD_GROUPS):
        try:
            return len(await requests.items(resource, namespace))
        except NotFoundError:
            continue
    return 0
