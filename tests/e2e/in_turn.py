"""What a scheduler makes of objects that come a step at a time.

A step is done when everything in it has been looked at and nothing more happens; what has found no place then
goes again, and so do victims, so that the next step finds a cluster at rest.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from berth.client.resources import EVENTS, POD_GROUPS, PODS, RESOURCE_CLAIMS
from tests.e2e.api_servers import ApiServer
from tests.e2e.default_cluster import default_cluster
from tests.e2e.hold import held_pod, holding
from tests.e2e.outcomes import outcome
from tests.e2e.seen import LOOK_SECONDS, items, until
from tests.e2e.watchers import Seen
from tests.suite import PATIENCE_SECONDS

# How long nothing has to happen where something may follow: backoff ends after a second.
QUIET_SECONDS = 2.5
SHORTLY = 0.3
WATCHED = {"Pod": PODS, "PodGroup": POD_GROUPS, "ResourceClaim": RESOURCE_CLAIMS}


@dataclass(frozen=True)
class Step:
    """Objects that are created one after the other: (resource, document). Not all pods are looked at."""

    name: str
    objects: tuple
    gated: bool = False

    def of(self, resource):
        """The objects of that kind."""
        return [document for kind, document in self.objects if kind == resource]


class WithoutKubelets(ApiServer):
    """The sandbox in memory, where victims leave only when they are let go."""

    def command(self, kubeconfig, *flags, pod_groups=False):
        """Its command line."""
        return super().command(kubeconfig, "--no-kubelets", *flags, pod_groups=pod_groups)


async def play(folder, objects, steps, configuration, **which):
    """Each step's outcome on a cluster that begins with these objects."""
    seen, outcomes = Seen(), {}
    async with AsyncExitStack() as stack:
        hold = await stack.enter_async_context(holding())
        configuration += hold.configuration().replace("{", "{{").replace("}", "}}")
        running = default_cluster(folder, objects, configuration, server=WithoutKubelets(), **which)
        cluster = await stack.enter_async_context(running)
        for of, resource in WATCHED.items():
            await stack.enter_async_context(cluster.watching(partial(seen.look, of), resource))
        for step in steps:
            await together(cluster, hold, step)
            await settled(seen, step)
            await reported(cluster, seen, step)
            outcomes[step.name] = await outcome(cluster, seen, step)
            await cleared(cluster, seen, step)
    return outcomes


async def together(cluster, hold, step):
    """Create the step's objects while the scheduler is held up, until it has all pods in its queue."""
    holding_up = f"hold-{step.name}"
    hold.asked.clear()
    hold.released.clear()
    await cluster.create(PODS, [held_pod(holding_up)])
    async with asyncio.timeout(PATIENCE_SECONDS):
        await hold.asked.wait()
        before = await pending(cluster)
        for resource, document in step.objects:
            await cluster.create(resource, [document])
        while await pending(cluster) < before + len(step.of(PODS)):  # noqa: ASYNC110 - seen in metrics only
            await asyncio.sleep(LOOK_SECONDS)
    hold.released.set()
    await cluster.delete(PODS, holding_up, "default")


async def pending(cluster):
    """How many pods wait for the scheduler, or are waited for before they may."""
    queues = await cluster.metrics("scheduler_pending_pods")
    return sum(count for name, count in queues.items() if "active" in name or "gated" in name)


async def reported(cluster, seen, step):
    """Wait for the events of what has been decided, which are written by and by."""
    awaited = set()
    for each in step.of(PODS):
        name = each["metadata"]["name"]
        failed = any(
            stated["status"] == "False" for stated in seen.stated.get(("Pod", name, "PodScheduled"), ())
        )
        awaited |= {(name, "FailedScheduling")} if failed else set()
        awaited |= {(name, "Scheduled")} if seen.node_of(name) else set()
    awaited |= {(name, "Preempted") for name in seen.leaving()}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while awaited - set(reasons(await items(cluster, EVENTS))):  # noqa: ASYNC110 - events are listed
            await asyncio.sleep(LOOK_SECONDS)


def reasons(events):
    """Which pods have which events."""
    return [(event["regarding"]["name"], event["reason"]) for event in events]


async def settled(seen, step):
    """Wait until all of the step has been looked at, and what follows from it has happened."""
    pods = [each["metadata"]["name"] for each in step.of(PODS)]
    groups = [each["metadata"]["name"] for each in step.of(POD_GROUPS)]

    def stated():
        everyone = all(seen.node_of(name) or ("Pod", name, "PodScheduled") in seen.stated for name in pods)
        return step.gated or (
            everyone and all(("PodGroup", name, "PodGroupScheduled") in seen.stated for name in groups)
        )

    await until(lambda: stated() and seen.quiet() > SHORTLY, step.name)
    if not all(map(seen.node_of, pods)) and not step.gated:
        patient = QUIET_SECONDS if groups or any(name in seen.nominated for name in pods) else SHORTLY * 2
        await until(lambda: seen.quiet() > patient, step.name)


async def cleared(cluster, seen, step):
    """Take away what has found no place and what is to leave, and wait until it is gone."""
    unplaced = [
        name for name in (each["metadata"]["name"] for each in step.of(PODS)) if not seen.node_of(name)
    ]
    for name in unplaced:
        await cluster.delete(PODS, name, "default")
    await until(lambda: {("Pod", name) for name in unplaced} <= seen.gone, f"end of {step.name}")
    leaving = sorted(seen.leaving())
    for name in leaving:
        await cluster.delete(PODS, name, "default", gracePeriodSeconds=0)
    await until(lambda: {("Pod", name) for name in leaving} <= seen.gone, f"end of {step.name}")
