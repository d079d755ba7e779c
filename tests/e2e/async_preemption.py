"""Thirty pods preempt at once on three full nodes: `python -m tests.e2e.async_preemption --runs 6 --real`.

Prints what each scheduler that is at hand, Berth and kube-scheduler, sends to evict the thirty victims:
deletions, victims deleted more than once, Preempted events. Schedulers have their default limit of requests
and, as kubeadm has it, the user `system:kube-scheduler`; the victims take their time to end.

Source: test/e2e/scheduling/preemption.go, the spec of asynchronous preemption (Kubernetes v1.36).
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from berth.demo.processes import program
from tests.e2e.faults import PATHS, faulty_cluster, node, pod
from tests.kube_scheduler import kube_scheduler

NODES, VICTIMS_OF_A_NODE = 3, 10
VICTIMS = NODES * VICTIMS_OF_A_NODE
DEFAULT_QPS = 50
USER = "system:kube-scheduler"
NAME = "scheduler"
EVENTS = "/api/v1/namespaces/default/events?fieldSelector=reason%3DPreempted"
BERTH = (program("berth"), "scheduler")


@dataclass(frozen=True)
class Evictions:
    """What a scheduler sent, by victim: the times of deletions, and how often it was reported."""

    deletions: dict[str, list[float]]
    events: Counter

    def __str__(self):
        """All of it as a line."""
        times = sorted(at for several in self.deletions.values() for at in several)
        twice = sum(len(several) > 1 for several in self.deletions.values())
        return (
            f"{len(self.deletions)} victims, {len(times)} deletions, {twice} victims deleted more than once, "
            f"{self.events.total()} Preempted events, {times[-1] - times[0]:.1f} s between deletions"
        )


async def preempt(folder, command=BERTH, *, real=False):
    """Have the scheduler of that command place thirty pods that each need a victim, and see what it sends."""
    async with faulty_cluster(folder, room=VICTIMS_OF_A_NODE, real=real, kubelets=True) as cluster:
        cluster.command = command
        await cluster.create(
            *(importance(name, value) for name, value in (("low", 100), ("medium", 200))),
            *(node(f"n{i}", pods=VICTIMS_OF_A_NODE) for i in range(NODES)),
        )
        await cluster.create(
            *(pod(f"low-{i}", priorityClassName="low", nodeName=f"n{i % NODES}") for i in range(VICTIMS))
        )
        await cluster.start_scheduler(NAME, user=USER, qps=DEFAULT_QPS)
        await cluster.ready(NAME)
        preemptors = {f"medium-{i}" for i in range(VICTIMS)}
        await cluster.create(*(pod(name, priorityClassName="medium") for name in preemptors))
        await cluster.until(lambda: preemptors <= bound(cluster), "each preemptor is bound")
        deleted = await deletions(cluster)
        await cluster.until(lambda: all_reported(cluster, deleted), "each victim has its event")
        # What it has not reported yet it reports before it ends.
        await cluster.end(NAME)
        return Evictions(await deletions(cluster), await preempted_events(cluster))


def importance(name, value):
    """A priority class."""
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
    }


def bound(cluster):
    """The names of the pods that are on nodes."""
    return {each["metadata"]["name"] for each in cluster.pods() if each["spec"].get("nodeName")}


async def deletions(cluster):
    """When the scheduler had pods deleted, by their names."""
    asked = {}
    for entry in await cluster.proxy.ask("log"):
        if entry["via"] == NAME and entry["method"] == "DELETE" and entry["path"].startswith(PATHS["Pod"]):
            asked.setdefault(entry["path"].partition("?")[0].rpartition("/")[2], []).append(entry["at"])
    return asked


async def preempted_events(cluster):
    """How often the scheduler reported a preemption, by victim; each of a series of events counts."""
    reported = Counter()
    for event in (await cluster.get(EVENTS))["items"]:
        times = event.get("series", {}).get("count") or event.get("count") or 1
        reported[event["involvedObject"]["name"]] += times
    return reported


async def all_reported(cluster, deleted):
    """Whether there is an event for each of these pods."""
    return deleted.keys() <= (await preempted_events(cluster)).keys()


async def main():
    """Print the runs in turn; 1 where Berth sent more events in a run than kube-scheduler in any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--real", action="store_true", help="on a real API server (KUBEBUILDER_ASSETS)")
    wanted = parser.parse_args()
    commands = {"berth": BERTH} | ({"kube-scheduler": (kube_scheduler(),)} if kube_scheduler() else {})
    worst = Counter()
    for run in range(wanted.runs):
        for name, command in commands.items():
            folder = Path(tempfile.mkdtemp(prefix=f"async-preemption-{name}-"))
            found = await preempt(folder, command, real=wanted.real)
            worst[name] = max(worst[name], found.events.total())
            print(f"{run} {name}: {found}", flush=True)  # noqa: T201 - a command talks on its streams
    return int(worst["berth"] > worst.get("kube-scheduler", VICTIMS))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
