"""A cluster that a scheduler decides in, kube-scheduler or Berth, and an observer's recording of it."""

import asyncio
from random import Random

import msgspec

from berth.client.resources import PODS
from berth.framework.clock import SYSTEM_CLOCK
from berth.observer.observing import Observer
from berth.recordings.cluster.files import FileBounds, RotatingFiles
from tests.e2e.default_cluster import CONFIGURATION, default_cluster
from tests.unit.observer.kit import a_node
from tests.unit.simulation.kit import pod

ZONE = "topology.kubernetes.io/zone"
# kube-scheduler asks for protobuf, which the sandbox does not write for every kind.
JSON = CONFIGURATION.replace("qps: -1", "qps: -1, contentType: application/json")


def drawn(count, chance):
    """Pods of several sizes, some of which spread over zones, and some of which fit nowhere in the end."""
    return [_pod(f"p{i}", chance) for i in range(count)]


def _pod(name, chance):
    spec = {}
    if chance.random() < 0.4:
        spread = {"maxSkew": 1, "topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
        when = chance.choice(("ScheduleAnyway", "DoNotSchedule"))
        spec["topologySpreadConstraints"] = [{**spread, "whenUnsatisfiable": when}]
    made = pod(
        name, cpu=chance.choice(("100m", "500m", "1", "2")), labels={"app": chance.choice("ab")}, **spec
    )
    made["metadata"]["namespace"] = "default"
    return made


async def observed(folder, scheduler, count, *, in_turn, nodes=12, seed=1):
    """The recording of a cluster in which so many pods are decided on, in turn or created at once."""
    chance, recordings, decided = Random(seed), folder / "recordings", set()
    sizes = [chance.choice(("4", "8", "16")) for _ in range(nodes)]
    machines = [a_node(f"n{i}", cpu=cpu, labels={ZONE: f"z{i % 3}"}) for i, cpu in enumerate(sizes)]
    pods = drawn(count, chance)

    def look(_kind, document):
        conditions = document.get("status", {}).get("conditions", ())
        if document["spec"].get("nodeName") or any(c.get("reason") == "Unschedulable" for c in conditions):
            decided.add(document["metadata"]["name"])

    async with default_cluster(folder, machines, JSON, scheduler=scheduler) as cluster:
        observer = Observer(cluster.transport)
        files = RotatingFiles(
            recordings,
            FileBounds(1 << 30, 1),
            SYSTEM_CLOCK,
            observer.listing,
            version="test",
            anonymized=False,
        )
        running = asyncio.create_task(observer.run(files))
        await cluster.reach(lambda: running.done() or files.files)
        async with cluster.watching(look):
            for several in [[each] for each in pods] if in_turn else [pods]:
                await cluster.create(PODS, several)
                names = {each["metadata"]["name"] for each in several}
                await cluster.reach(lambda names=names: names <= decided and names <= seen(observer))
        running.cancel()
        await asyncio.wait([running])
        files.close()
    (file,) = recordings.iterdir()
    return file


def seen(observer):
    """The names of the pods that the observer saw decided on."""
    documents = [document for document in observer.listing() if b'"kind":"Pod"' in document]
    decided = [each for each in documents if b'"nodeName"' in each or b'"Unschedulable"' in each]
    return {msgspec.json.decode(each)["metadata"]["name"] for each in decided}
