"""What kubectl shows of queues: the status of Queue objects and of ElasticQuotas, as it should be now."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from berth_queues.amounts import written
from berth_queues.cluster import Cluster
from berth_queues.elastic_quotas import ELASTIC_QUOTAS
from berth_queues.fair_shares import Shares
from berth_queues.queue_objects import QUEUES, queue_name
from berth_queues.tree import Queue
from berth_sdk import ObjectKey, WatchedResource


class Status(NamedTuple):
    """An object, and its whole status."""

    key: ObjectKey
    status: dict[str, Any]


def statuses(cluster: Cluster) -> list[Status]:
    """Return the status of every object that is a queue. Cost: O(queues * resources)."""
    registry, shares = cluster.registry, cluster.shares()
    found = []
    for name in {*registry.objects.by_name, *registry.objects.errors}:
        named = queue_name(name)
        message = registry.objects.errors.get(name) or registry.tree.errors.get(named)
        queue = registry.queue(named)
        status = {"message": message} if queue is None else _of_queue(cluster, queue, shares)
        found.append(Status(_key(QUEUES, "", name), status))
    for quota in registry.quotas.all():
        used = registry.used(quota.queue) if quota == registry.quotas.counting[quota.namespace] else {}
        named_resources = sorted({*quota.min, *quota.max})
        status = {"used": {name: written(name, used.get(name, 0)) for name in named_resources}}
        found.append(Status(_key(ELASTIC_QUOTAS, quota.namespace, quota.name), status))
    return found


def _of_queue(cluster: Cluster, queue: Queue, shares: Shares) -> dict[str, Any]:
    own = shares.get(queue.name, {})
    governed = [name for name in queue.root.subtree if queue.used.get(name) or own.get(name)]
    names = sorted({*governed, *queue.spec.quota, *queue.spec.limit, *queue.used})
    return {
        "used": _shown({name: queue.used.get(name, 0) for name in names}),
        "fairShare": _shown({name: int(own[name]) for name in sorted(own) if name in names}),
        "borrowed": _shown(queue.borrowed),
        "waiting": cluster.waiting_in(queue),
    }


def _shown(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: written(name, amount) for name, amount in amounts.items()}


def _key(kind: WatchedResource, namespace: str, name: str) -> ObjectKey:
    return ObjectKey(kind.group, kind.version, kind.resource, namespace, name)
