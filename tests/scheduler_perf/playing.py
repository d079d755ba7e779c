"""A workload played: its operations one after the other.

Source: test/integration/scheduler_perf/executor.go (Kubernetes v1.36.2).
"""

import asyncio
from collections import Counter

from tests.scheduler_perf.changing import create_any, update_any
from tests.scheduler_perf.churning import churn, delete_pods
from tests.scheduler_perf.claim_controller import ClaimController
from tests.scheduler_perf.collecting import Collection
from tests.scheduler_perf.devices import allocate_claims, create_claims, create_driver
from tests.scheduler_perf.errors import NotPlayedError, PerfError
from tests.scheduler_perf.groups import create_groups, wait_for_groups
from tests.scheduler_perf.nodes import create_nodes
from tests.scheduler_perf.pods import PodBatch
from tests.scheduler_perf.requests import Requests
from tests.scheduler_perf.steady import create_steadily
from tests.scheduler_perf.templates import ObjectTemplate
from tests.scheduler_perf.watching import PodWatch

DECLARED = "numNodeDeclaredFeatures"
CLAIMS_GATE = "DynamicResourceAllocation"


def refused(workload, *, waiting):
    """Why a workload is not played this way; nothing where it is."""
    if not waiting:
        return ""
    if any(operation.opcode == "startCollectingMetrics" for operation in workload.operations):
        return "it measures more than the creation of pods, so none are there before"
    if any(operation["steadyState"] for operation in workload.resolved() if operation["collectMetrics"]):
        return "it deletes pods and creates others, so none are there before"
    return ""


class Play:
    """One run of a workload on a cluster that is there for it alone."""

    def __init__(self, workload, cluster, *, waiting=False, timeout_seconds=600.0):
        self.workload = workload
        self.cluster = cluster
        self.waiting = waiting
        self.timeout_seconds = timeout_seconds
        self.requests = Requests(cluster.transport)
        self.watch = PodWatch(cluster.transport)
        self.unmet = Counter()
        """Pods by namespace that a barrier waits for."""
        self.results = []
        self._namespaces = set()
        self._collection = None
        self.background = None

    async def run(self):
        """All operations, and the figures of each collection.

        Raises: PerfError; NotPlayedError; ClientError; ChildFailedError.
        """
        if reason := refused(self.workload, waiting=self.waiting):
            raise NotPlayedError(reason)
        try:
            async with asyncio.TaskGroup() as self.background:
                self.background.create_task(self.watch.run())
                if self.workload.gates.get(CLAIMS_GATE):
                    self.background.create_task(ClaimController(self.requests, self.watch).run())
                await self.cluster.start_scheduler()
                for index, operation in enumerate(self.workload.resolved()):
                    await OPERATIONS[operation.opcode](self, index, operation)
                self._finish()
        except* _Finished:
            pass
        return self.results

    def _finish(self):
        """End what runs beside the operations."""
        raise _Finished

    async def namespace(self, name, template=None):
        """See to it that a namespace is there and known."""
        if name not in self._namespaces:
            self._namespaces.add(name)
            self.unmet[name] += 0
            await self.requests.namespace(name, template)

    async def wait(self, namespace, count, **selection):
        """Wait for so many of a namespace's pods. Raises: PerfError; ChildFailedError as `check`."""
        await self.watch.wait(
            namespace,
            count,
            check=self.cluster.check,
            timeout_seconds=self.timeout_seconds,
            **selection,
        )

    async def collect(self, namespaces, labels=None, name=""):
        """Begin to collect. Raises: PerfError where it has begun already."""
        if self._collection is not None:
            raise PerfError(
                "metrics collection is overlapping: stop the first one before a second one starts"
            )
        self._collection = Collection(
            self.cluster, self.watch, namespaces, labels, name=name, from_first_binding=self.waiting
        )
        await self._collection.start(self.background)

    async def collected(self, place):
        """End the collection and keep its figures."""
        if self._collection is None:
            raise PerfError(
                f"{place}: stopCollectingMetrics without startCollectingMetrics: put one before it"
            )
        found = await self._collection.stop(self.workload.selector)
        self.results.append((self._collection.name, found))
        self._collection = None


class _Finished(Exception):  # noqa: N818 - it is no error
    """All operations have been played; what runs beside them is to end."""


async def _create_nodes(play, index, operation):
    declared = ()
    if play.workload.gates.get("NodeDeclaredFeatures"):
        # Upstream's Go code gives these to the nodes: nodedeclaredfeatures/node_declared_features_test.go.
        declared = [f"Feature{i + 1}" for i in range(play.workload.parameters.get(DECLARED, 0))]
    await create_nodes(play.requests, operation, f"node-{index}-", declared)


async def _create_namespaces(play, _, operation):
    path = operation["namespaceTemplatePath"]
    template = ObjectTemplate(path) if path else None
    for i in range(operation["count"] or 0):
        name = f"{operation['prefix']}-{i}"
        await play.namespace(name, template.document() if template else None)


async def _create_pods(play, index, operation):
    namespace = operation["namespace"] or f"namespace-{index}"
    await play.namespace(namespace)
    batch = PodBatch(play.requests, operation, namespace, play.workload.pod_template)
    before = play.waiting and operation["collectMetrics"]
    if before:
        await play.cluster.stop_scheduler()
        await batch.create()
        await play.wait(namespace, batch.count, stage="Claimed")
    if operation["collectMetrics"]:
        await play.collect([namespace], name=namespace)
    if before:
        await play.cluster.start_scheduler()
    elif operation["steadyState"]:
        await create_steadily(play, namespace, batch, operation["duration"])
    else:
        await batch.create()
    if operation["skipWaitToCompletion"]:
        play.unmet[namespace] += batch.count
    elif not operation["steadyState"]:
        await play.wait(namespace, batch.count)
    if operation["collectMetrics"]:
        await play.collected(operation.place)


async def _barrier(play, _, operation):
    wanted = operation["namespaces"] or list(play.unmet)
    stage = operation["stageRequirement"] or "Scheduled"
    for namespace in wanted:
        if namespace not in play.unmet:
            raise PerfError(
                f"{operation.place}: namespaces: unknown namespace {namespace}: no operation made it"
            )
        count = play.unmet[namespace]
        await play.wait(namespace, count, labels=operation["labelSelector"], stage=stage)
    if stage == "Scheduled":
        for namespace in wanted:
            del play.unmet[namespace]


async def _sleep(_, __, operation):
    await asyncio.sleep(operation["duration"] or 0.0)


async def _start(play, _, operation):
    await play.collect(operation["namespaces"], operation["labelSelector"], operation["name"] or "")


async def _stop(play, _, operation):
    await play.collected(operation.place)


async def _create_any(play, _, operation):
    if operation["namespace"]:
        await play.namespace(operation["namespace"])
    await create_any(play.requests, operation)


async def _update_any(play, _, operation):
    if operation["namespace"]:
        await play.namespace(operation["namespace"])
    await update_any(play.requests, operation)


async def _create_groups(play, _, operation):
    await play.namespace(operation["namespace"])
    await create_groups(play.requests, operation)


async def _create_claims(play, _, operation):
    await play.namespace(operation["namespace"])
    await create_claims(play.requests, operation)


async def _churn(play, index, operation):
    namespace = operation["namespace"] or f"namespace-{index}"
    await play.requests.namespace(namespace)
    play.background.create_task(churn(play.requests, operation, namespace))


async def _delete_pods(play, _, operation):
    deletion = delete_pods(play.requests, play.watch, operation)
    if operation["skipWaitToCompletion"]:
        play.background.create_task(deletion)
    else:
        await deletion


OPERATIONS = {
    "createNodes": _create_nodes,
    "createNamespaces": _create_namespaces,
    "createPods": _create_pods,
    "deletePods": _delete_pods,
    "churn": _churn,
    "barrier": _barrier,
    "sleep": _sleep,
    "createAny": _create_any,
    "updateAny": _update_any,
    "createResourceDriver": lambda play, _, operation: create_driver(play.requests, operation),
    "createResourceClaims": _create_claims,
    "allocResourceClaims": lambda play, _, operation: allocate_claims(play.requests, operation),
    "createPodGroups": _create_groups,
    "createCompositePodGroups": _create_groups,
    "waitForPodGroups": lambda play, _, operation: wait_for_groups(
        play.requests, operation, play.timeout_seconds
    ),
    "startCollectingMetrics": _start,
    "stopCollectingMetrics": _stop,
}
"""All but createPodSets, which is taken apart into createPods before."""
