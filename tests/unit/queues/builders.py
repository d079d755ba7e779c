"""Quotas, pods of namespaces, and a plugin that knows them, in one line each."""

from contextlib import asynccontextmanager

from berth_queues import Queues
from berth_sdk import Code, ObjectKey, Reason
from berth_sdk.testing import make_node, make_pod, running

FULL = Reason("Insufficient cpu")


def key(namespace, name="quota"):
    return ObjectKey("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", namespace, name)


def quota(least=None, most=None):
    """A quota's document."""
    return {"spec": {"min": least or {}, "max": most or {}}}


def cpu(least, most=None):
    """A quota of CPU alone."""
    return quota({"cpu": str(least)}, {} if most is None else {"cpu": str(most)})


def pod(namespace, name, cores=1, priority=0, **requests):
    return make_pod(name, namespace=namespace, requests={"cpu": str(cores), **requests}, priority=priority)


def uid(document):
    return document["metadata"]["uid"]


@asynccontextmanager
async def at_work(quotas, *nodes, arguments=None, plugin=None):
    """The plugin with these quotas by namespace; nodes have 8 cores each, `n0` alone if none is named."""
    plugin = plugin or Queues()
    documents = [make_node(name) for name in nodes or ("n0",)]
    async with running(plugin, *documents, arguments=arguments) as host:
        for namespace, document in quotas.items():
            host.cluster.put_object(key(namespace), document)
        await host.update()
        yield host


async def refusal(host, document):
    """Why the pod is turned down, None if it isn't."""
    status = (await host.filter(document)).status
    if status.code is Code.SKIP:
        return None
    assert status.code is Code.PENDING
    return status.reasons[0]


async def evicted(host, document, reason=None, **reasons):
    """The node where room is made and the UIDs of who has to go, or why there is none.

    Every node was turned down by the quota, or for `reason`, or for the one given by its name.
    """
    why = reason or Reason(await refusal(host, document), Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    answer = await host.post_filter(document, {name: reasons.get(name, why) for name in host.cluster.names})
    if answer.status.code != Code.SUCCESS.value:
        return answer.status.reasons[0]
    return answer.nominated_node_name, set(answer.victim_uids)
