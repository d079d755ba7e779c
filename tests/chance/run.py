"""One run: kube-scheduler decides on a cluster's pods in turn, and Berth is asked about each."""

import asyncio
import json
from dataclasses import dataclass, field

from berth.client import resources
from berth.client.resources import PODS
from tests.chance.cluster import Drawn
from tests.chance.comparing import Decided, comparable, differences
from tests.chance.documents import KINDS, documents_of
from tests.chance.scheduler_log import FLAGS, SchedulerLog
from tests.chance.volume_controller import bind_volumes
from tests.e2e.api_servers import IN_MEMORY
from tests.e2e.default_cluster import default_cluster
from tests.e2e.seen import Seen, items
from tests.kube_scheduler import kube_scheduler

# The kinds of which something changes while pods are decided on; the others are listed once a run.
CHANGING = ("Pod", "PersistentVolume", "PersistentVolumeClaim", "ResourceClaim")
LOOK_SECONDS, DECIDED_SECONDS, PREEMPTED_SECONDS = 0.02, 30, 10


@dataclass
class Found:
    """What came of a run."""

    bound: int = 0
    rejected: int = 0
    preempted: int = 0
    scored: int = 0
    """Nodes' scores of one plugin that were compared."""
    differences: list[tuple[str, list[str]]] = field(default_factory=list)
    scenarios: dict[str, dict] = field(default_factory=dict)
    """Where the two differ: the whole question, as tests.golden asks it."""
    broken: str = ""
    """Why the run did not come to its end."""


async def run(drawn, folder, *, judge=differences, server=IN_MEMORY):
    """Have kube-scheduler decide on the pods, one after the other, and compare.

    `judge` gives the differences between what Berth makes of a question and what kube-scheduler did.
    """
    text = json.dumps(drawn.configuration).replace("{", "{{").replace("}", "}}")
    configured = text.replace('"kubeconfig": ""', '"kubeconfig": "{kubeconfig}"')
    seen, found = Seen(), Found()
    scheduler = (kube_scheduler(),)
    async with (
        default_cluster(
            folder, drawn.objects, configured, FLAGS, scheduler=scheduler, server=server
        ) as cluster,
        cluster.watching(seen.look),
    ):
        turns = Turns(cluster, seen, SchedulerLog(folder / "scheduler.log"))
        for pod in drawn.pods:
            scenario, theirs = await turns.take(pod)
            scenario["config"] = drawn.configuration
            _count(found, theirs)
            if different := await judge(scenario, theirs):
                name = pod["metadata"]["name"]
                found.differences.append((name, different))
                found.scenarios[name] = scenario
        turns.log.close()
    return found


def _count(found, theirs):
    found.bound += bool(theirs.node)
    found.rejected += not theirs.node and not theirs.nominated
    found.preempted += bool(theirs.nominated)
    found.scored += sum(map(len, theirs.scored.parts.values()))


class Turns:
    """Pods that come one after the other, each when the last is settled."""

    def __init__(self, cluster, seen, log):
        self.cluster, self.seen, self.log = cluster, seen, log
        self._listed = {}

    async def take(self, pod):
        """A pod's turn: the question that it was, and kube-scheduler's decision."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        before = await self._objects()
        there = {each["metadata"]["name"]: each["metadata"]["namespace"] for each in before["pods"]}
        await self.cluster.create(PODS, [pod])
        await self._until(lambda: self.seen.decided(name), pod)
        created = as_created(next(each for each in await items(self.cluster, PODS) if named(each, name)))
        # A pod whose volumes or devices are being bound is nominated, too, but has not been rejected.
        rejected = name in self.seen.first
        nominated = self.seen.nominated.get(name, "") if rejected else ""
        decided = Decided(
            "" if rejected else self.seen.on[name],
            self.seen.first.get(name, {}).get("message", ""),
            nominated,
            scored=self.log.attempts(f"{namespace}/{name}")[0],
        )
        if nominated:
            await self._after_victims(pod)
            # The pod may fit, and be bound, while some of its victims are still terminating.
            victims = there.keys() & self.seen.leaving
            decided.victims = {f"{there[victim]}/{victim}" for victim in victims}
            await self._until(lambda: victims <= self.seen.gone, pod)
        elif not decided.node:
            await self.cluster.delete(PODS, name, namespace)
            await self._until(lambda: name in self.seen.gone, pod)
        else:
            decided.devices = await self._devices(pod)
        return {"objects": before, "pod": created}, decided

    async def _after_victims(self, pod):
        """Wait until the pod has the room that was made for it; one that does not fit after all leaves."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            await self._until(lambda: name in self.seen.on, pod, PREEMPTED_SECONDS)
        except TimeoutError:
            await self.cluster.delete(PODS, name, namespace)
            await self._until(lambda: name in self.seen.gone, pod)

    async def _devices(self, pod):
        """What the pod's claims have got."""
        names = {each["resourceClaimName"] for each in pod["spec"].get("resourceClaims", ())}
        return {
            claim["metadata"]["name"]: comparable(claim["status"]["allocation"]["devices"]["results"])
            for claim in (await items(self.cluster, resources.RESOURCE_CLAIMS) if names else ())
            if claim["metadata"]["name"] in names
        }

    async def _objects(self):
        kinds = {KINDS[name] for name in CHANGING} if self._listed else set(KINDS.values())
        self._listed |= {kind.plural: await items(self.cluster, kind) for kind in kinds}
        return dict(self._listed)

    async def _until(self, claim, pod, seconds=DECIDED_SECONDS):
        async with asyncio.timeout(seconds):
            while not claim():
                self.cluster.scheduler.check()
                if "volumes" in pod["spec"]:
                    await bind_volumes(self.cluster, items)
                await asyncio.sleep(LOOK_SECONDS)


def named(document, name):
    """Whether it is the object of that name."""
    return document["metadata"]["name"] == name


def as_created(pod):
    """The pod with all that the API server made of it, but as it was before any decision."""
    pod["spec"].pop("nodeName", None)
    pod["status"] = {"phase": "Pending"}
    return pod


def again(scenario):
    """The run that asks a kept question once more."""
    objects, pod = documents_of(scenario)
    for each in (*objects, pod):
        each["metadata"].pop("resourceVersion", None)
    return Drawn(scenario["config"], objects, [pod])
