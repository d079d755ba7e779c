"""The leaderships of a process, one for each shard, as the process and its pages see them.

    shard ── lease ── leadership ── fence ── loop      each apart from those of other shards
                                              └── turn ── queue, cache, snapshot: one for all

docs/decisions/0024-shards.md
"""

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from berth.config.shards import Shard
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.pools.record_heap import ShardOf
from berth.scheduler.leading.campaign import Campaign
from berth.scheduler.leading.leadership import Leadership
from berth.serving.health import Check, NotedCheck

CHECK = "leaderElection"


def lease_name(resource_name: str, shard: str) -> str:
    """The lease of a shard; "" stands for the only shard there is."""
    return f"{resource_name}-{shard}" if shard else resource_name


def shard_of_records(shards: tuple[Shard, ...]) -> ShardOf:
    """Give the function that names the shard of a waiting pod."""
    names = {profile: shard.name for shard in shards for profile in shard.profiles}

    def shard_of(record: QueuedPodInfo) -> str:
        return names[record.pod.spec.scheduler_name]

    return shard_of


def margins(resource_name: str, campaigns: Mapping[str, Campaign]) -> dict[str, float]:
    """How much time is left to renew the leases that this process holds, from 1 to 0, by lease."""
    return {
        lease_name(resource_name, shard): each.margin() for shard, each in campaigns.items() if each.leading
    }


def lease_failures(resource_name: str, campaigns: Mapping[str, Campaign]) -> dict[str, float]:
    """How many tries in a row to acquire or renew each lease failed, by lease."""
    return {lease_name(resource_name, shard): float(each.failures) for shard, each in campaigns.items()}


def held(resource_name: str, campaigns: Mapping[str, Campaign]) -> dict[str, float]:
    """Whether a lease is held by any process, as this one last saw it, by lease."""
    return {lease_name(resource_name, shard): float(each.is_held()) for shard, each in campaigns.items()}


class Leaderships:
    """Leaderships by shard, in the order in which the shards are listed."""

    def __init__(self, by_shard: Mapping[str, Leadership], *, elected: bool) -> None:
        self._by_shard = by_shard
        self._elected = elected

    @property
    def first(self) -> Leadership:
        """That of the first shard: its leader shows what one replica alone is to show, and takes changes."""
        return next(iter(self._by_shard.values()))

    def leads(self, shard: str) -> bool:
        """Whether this process schedules the shard."""
        return self._by_shard[shard].leads

    def leads_any(self) -> bool:
        """Whether this process schedules anything."""
        return any(each.leads for each in self._by_shard.values())

    def leading(self, resource_name: str) -> dict[str, float]:
        """Whether this process leads, by lease."""
        return {lease_name(resource_name, shard): float(each.leads) for shard, each in self._by_shard.items()}

    def checks(self) -> dict[str, Check]:
        """A health check for each lease; those of shards note whether it is held here."""
        if not self._elected:
            return {}
        return {
            f"{CHECK}-{shard}" if shard else CHECK: (
                NotedCheck(each.check, partial(_standing, each)) if shard else each.check
            )
            for shard, each in self._by_shard.items()
        }

    def campaigns(self) -> list[Coroutine[Any, Any, None]]:
        """For each shard the work that campaigns and schedules; it never ends by itself."""
        return [each.run() for each in self._by_shard.values()]

    async def release(self, *, settled: bool) -> None:
        """Give all leases back, or let them run out where writes are not `settled`."""
        await asyncio.gather(*(each.release(settled=settled) for each in self._by_shard.values()))


def _standing(leadership: Leadership) -> str:
    return "leads" if leadership.leads else "stands by"
