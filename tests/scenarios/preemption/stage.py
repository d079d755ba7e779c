"""Full nodes, and a pod that wants in."""

from datetime import UTC, datetime

from tests.scenarios.kit.cluster import Cluster

HIGH, MIDDLE, LOW = 100, 50, 1
LABELS = {"app": "db"}


def crowded(nodes=1, **options):
    """A cluster of full nodes of four CPUs without pods yet; victims take a minute to leave."""
    cluster = Cluster(**options)
    cluster.api.grace_seconds = 60
    for i in range(nodes):
        cluster.add_node(f"n{i}", cpu="4")
    return cluster


def place(cluster, name, on="n0", cpu="4", priority=LOW, *, started=None, **fields):
    """A pod on a node; `started` in seconds since the epoch."""
    cluster.add_pod(name, cpu=cpu, priority=priority, node_name=on, **fields)
    if started is not None:
        cluster.change_pod(name, status={"start_time": datetime.fromtimestamp(started, UTC)})


async def arrives(cluster, name="high", cpu="4", priority=HIGH, **fields):
    """A pod comes that has to preempt, and all goes on until victims are on their way."""
    cluster.add_pod(name, cpu=cpu, priority=priority, **fields)
    await cluster.run()


def evicted(cluster):
    """The pods whose deletion was asked for, in order."""
    return [call.pod.partition("/")[2] for call in cluster.calls("delete")]


def message_of(cluster, name="high"):
    """What the pod's condition says of preemption."""
    return cluster.condition(name).message.partition("preemption: ")[2]
