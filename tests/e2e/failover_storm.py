"""Replicas lose their lease in every way, watches are cut and late: `python -m tests.e2e.failover_storm`.

Pods keep coming that exclude each other, that are to be spread, and that fill the nodes. What must hold then
is read from the API server alone: no node holds too many, no pod moves, no rule of a pod is broken.
With `--shards` there are two leases, each for pods and nodes of its own.
"""

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.e2e.fault_rules import Fault
from tests.e2e.faults import BINDING, LEASES, decided, faulty_cluster, node, pod
from tests.e2e.sharding import SHARDED, SHARDS

ZONES, NODES, ROOM, APPS = 3, 9, 5, 4
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WATCH = r"/apis?/.*watch=true"
REPLICAS = 2
FAIL_OVERS = 3
# As long as the leases of faults.ELECTION, and a little longer.
AWAY_SECONDS = 4.5
WAYS = ("kill", "freeze", "cut network", "end")


def storm(chance):
    """Watches that break and lag beyond a lease, bindings that are late within one, or lose their answers."""
    return (
        {"fault": Fault.CUT_WATCH, "path": WATCH, "rate": 0.3, "events": 12},
        {"fault": Fault.EXPIRE_WATCH, "path": WATCH, "rate": 0.15, "events": 12},
        {"fault": Fault.SLOW_WATCH, "path": WATCH, "rate": 0.7, "seconds": chance.uniform(0.5, 6.0)},
        {"fault": Fault.LATE, "path": BINDING, "rate": 0.2, "seconds": chance.uniform(0.1, 0.6)},
        {"fault": Fault.CUT_AFTER, "path": BINDING, "rate": 0.1},
    )


def workload(chance, count, color=""):
    """Pods of apps whose pods exclude each other or are spread, and plain ones, in any order.

    With a colour they and their apps are of that shard alone.
    """
    made = [
        chance.choice((excluding, spreading, plain))(f"{color}p{i}", f"{color}app{chance.randrange(APPS)}")
        for i in range(count)
    ]
    for each in made if color else ():
        each["spec"]["schedulerName"] = color
    chance.shuffle(made)
    return made


def excluding(name, app):
    """A pod that wants no other of its app on its node."""
    labels = {"excludes": app}
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return labelled(pod(name, affinity=rule), labels)


def spreading(name, app):
    """A pod whose app is to be in all zones alike."""
    labels = {"spreads": app}
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return labelled(pod(name, topologySpreadConstraints=[rule]), labels)


def plain(name, _app):
    """A pod that only needs room."""
    return labelled(pod(name), {})


def labelled(document, labels):
    document["metadata"]["labels"] = labels
    return document


def zone_of(node_name):
    """The zone of a node of this cluster."""
    return int(node_name[1:]) % ZONES


def broken_rules(pods, zones=ZONES):
    """What bound pods say that is not so.

    A pod may count on others whose binding is then lost with the lease. They wait again, and go on waiting
    where the nodes of their zone are full by then: zones may lack as many pods as wait.
    """
    excluded, spread, waiting = Counter(), defaultdict(Counter), Counter()
    for each in pods:
        on, labels = each["spec"].get("nodeName"), each["metadata"].get("labels") or {}
        if on and "excludes" in labels:
            excluded[labels["excludes"], on] += 1
        if on and "spreads" in labels:
            spread[labels["spreads"]][zone_of(on)] += 1
        waiting[labels.get("spreads")] += not on
    wrongs = [f"{count} pods of {app} on {on}" for (app, on), count in excluded.items() if count > 1]
    for app, counts in spread.items():
        each = [counts[zone] for zone in range(zones)]
        if sum(max(max(each) - 1 - count, 0) for count in each) > waiting[app]:
            wrongs.append(f"pods of {app} by zone: {each}, {waiting[app]} wait")
    return wrongs


class Replicas:
    """Schedulers that campaign for a lease, or one for each shard, and ways to take it from who has it."""

    def __init__(self, cluster, count, **configuration):
        self.cluster, self.count, self.configuration = cluster, count, configuration
        self.started = 0
        self.rules = ()

    async def fill_up(self):
        """Start replicas until there are enough, and wait until each knows everything."""
        self.cluster.bury()
        while len(self.cluster.schedulers) < self.count:
            name = f"r{self.started}"
            self.started += 1
            await self.cluster.start_scheduler(name, elect=True, **self.configuration)
            await self.cluster.ready(name)

    async def leader(self):
        """Which replica that lives wrote a lease last."""
        log = await self.cluster.proxy.ask("log")
        wrote = [
            e["via"] for e in log if e["method"] != "GET" and LEASES in e["path"] and 0 < e["status"] < 400
        ]
        return wrote[-1] if wrote and wrote[-1] in self.cluster.schedulers else ""

    async def storm(self, *rules):
        """Let these faults happen from now on."""
        self.rules = rules
        await self.cluster.proxy.rules(*rules)

    async def fail(self, name, how, seconds=AWAY_SECONDS):
        """Let a replica lose its lease that way; gives what brings it back, a coroutine."""
        cluster = self.cluster
        if how == "kill":
            await cluster.kill(name)
            return self.fill_up()
        if how == "end":
            await cluster.end(name)
            return self.fill_up()
        if how == "freeze":
            cluster.signal(name, signal.SIGSTOP)
        else:
            away = {"fault": Fault.HANG_BEFORE, "via": name, "path": "/"}
            await cluster.proxy.rules(away, *self.rules)
            await cluster.proxy.ask("cut", via=name)
        return self._back(name, how, seconds)

    async def _back(self, name, how, seconds):
        await asyncio.sleep(seconds)
        if how == "freeze":
            self.cluster.signal(name, signal.SIGCONT)
        else:
            await self.cluster.proxy.rules(*self.rules)
            await self.cluster.proxy.ask("cut", via=name)
        await self.fill_up()


async def run(seed, folder, fail_overs=FAIL_OVERS, *, real=False, sharded=False):
    """What went wrong in one run: nothing, as a rule. Each shard has as many nodes and pods as one alone."""
    chance, colors = random.Random(seed), SHARDS if sharded else ("",)
    async with faulty_cluster(folder, room=ROOM, seed=seed, real=real) as cluster:
        for i in range(NODES * len(colors)):
            labels = {ZONE: f"z{i % ZONES}", "color": colors[i % len(colors)]}
            await cluster.create(node(f"n{i}", pods=ROOM, **labels))
        replicas = Replicas(cluster, REPLICAS, rest=SHARDED if sharded else "")
        await replicas.fill_up()
        workloads = [workload(chance, NODES * ROOM + 10, color) for color in colors]
        pods = [each for one_of_each in zip(*workloads, strict=True) for each in one_of_each]
        await replicas.storm(*storm(chance))
        for share in range(fail_overs):
            leader = await cluster.until(replicas.leader, "one leads")
            for each in pods[share::fail_overs][::2]:
                await cluster.create(each)
            back = await replicas.fail(leader, chance.choice(WAYS))
            for each in pods[share::fail_overs][1::2]:
                await cluster.create(each)
            await back
        await cluster.proxy.rules()
        await cluster.until(lambda: len(cluster.pods()) == len(pods), "all are seen")
        await cluster.until(lambda: all(map(decided, cluster.pods())), "each is bound or says why not")
        return [*cluster.witness.wrongs, *broken_rules(cluster.pods())]


def main():
    """Run so many seeds; exit status 1 where any found something wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.failover_storm", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--fail-overs", type=int, default=FAIL_OVERS, help="of each seed")
    parser.add_argument(
        "--real", action="store_true", help="on a real API server, as `berth sandbox up --real`"
    )
    parser.add_argument(
        "--shards", action="store_true", help="two leases, each for pods and nodes of its own"
    )
    options = parser.parse_args()
    given = {"real": options.real, "sharded": options.shards}
    bad = 0
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="berth-") as folder:
            try:
                wrongs = asyncio.run(run(seed, Path(folder), options.fail_overs, **given))
            except AssertionError as error:
                wrongs = [str(error)]
        bad += bool(wrongs)
        sys.stdout.write(f"seed {seed}: {'; '.join(wrongs) or 'good'} ({time.monotonic() - began:.0f} s)\n")
        sys.stdout.flush()
    sys.stdout.write(f"{options.seeds - bad} of {options.seeds} good\n")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
