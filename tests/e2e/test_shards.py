"""Two processes and two shards: each leads one, and the one that stays takes over what the other led.

docs/decisions/0024-shards.md
"""

import json

import pytest

from tests.e2e.faults import LEASES, faulty_cluster, is_binding, node, pod
from tests.e2e.sharding import SHARDED, SHARDS, lease

pytestmark = pytest.mark.e2e

ROOM = 400
PODS = 60


def pods(prefix, count=PODS):
    """Pods of both profiles in turn."""
    return [pod(f"{color}-{prefix}{i}", schedulerName=color) for i in range(count) for color in SHARDS]


class Shards:
    """Which process leads which shard, read from the writes of leases that the proxy saw."""

    def __init__(self, cluster):
        self.cluster = cluster

    async def held(self):
        """Who holds each lease by what the API server says: a process by the name of its listener."""
        return {
            color: (await self.cluster.get(f"{LEASES}/kube-scheduler-{color}"))["spec"]["holderIdentity"]
            for color in SHARDS
        }

    async def both_lead(self):
        """The metrics of each process, where each of them leads one shard."""
        led = {name: await self.led_by(name) for name in self.cluster.schedulers}
        return led if sorted(map(len, led.values())) == [1, 1] else None

    async def led_by(self, name):
        """The shards that the process says it leads."""
        lines = (await self.cluster.show(name, "/metrics")).splitlines()
        return {
            color
            for color in SHARDS
            if f'leader_election_master_status{{name="kube-scheduler-{color}"}} 1.0' in lines
        }

    async def bound(self, count):
        """Wait until so many pods are bound."""
        witness = self.cluster.witness
        await self.cluster.until(lambda: len(witness.bound) >= count, f"{count} pods are bound")

    async def without_lease(self):
        """The bindings that a process sent for a shard whose lease another one had written last."""
        wrote, wrongs = {}, []
        for entry in await self.cluster.proxy.ask("log"):
            path = entry["path"].partition("?")[0]
            if is_binding(entry) and wrote.get(color_of(path)) != entry["via"]:
                wrongs.append((entry["via"], path))
            if entry["method"] == "PUT" and LEASES in path and 0 < entry["status"] < 400:
                wrote[path.rpartition("-")[2]] = entry["via"]
        return wrongs


def color_of(path):
    """The shard of the pod that is bound."""
    return path.split("/")[-2].partition("-")[0]


async def test_each_process_leads_a_shard_and_one_takes_over_the_other(tmp_path):
    """No pod is bound by a process that did not have its shard's lease."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        shards = Shards(cluster)
        await cluster.create(
            *(node(f"{color}-{i}", pods=ROOM, color=color) for color in SHARDS for i in range(4))
        )
        # So that every later write of a lease names it in its path.
        for color in SHARDS:
            await cluster.api.call("POST", LEASES, json.dumps(lease(color)).encode())
        for name in ("first", "second"):
            await cluster.start_scheduler(name, elect=True, rest=SHARDED)
        for name in ("first", "second"):
            await cluster.ready(name)
        led = await cluster.until(shards.both_lead, "each leads a shard")
        assert set(SHARDS) == set.union(*led.values())
        held = await shards.held()
        assert 2 == len(set(held.values()))
        verbose = await cluster.show("first", "/readyz?verbose")
        (mine,), (other,) = led["first"], led["second"]
        assert f"[+]leaderElection-{mine} ok: leads" in verbose
        assert f"[+]leaderElection-{other} ok: stands by" in verbose

        await cluster.create(*pods("a"))
        await shards.bound(2 * PODS)
        bindings = {name: await cluster.proxy.bindings(name) for name in ("first", "second")}
        assert {name: led[name] for name in led} == {
            name: {color_of(entry["path"].partition("?")[0]) for entry in sent}
            for name, sent in bindings.items()
        }

        await cluster.kill("first")
        await cluster.create(*pods("b"))
        await shards.bound(4 * PODS)
        assert set(SHARDS) == await shards.led_by("second")
        after = await shards.held()
        assert (held[other], held[other]) == (after[mine], after[other])
        assert [] == await shards.without_lease()
        assert [] == cluster.witness.wrongs
