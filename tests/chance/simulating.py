"""What `berth simulate` makes of what kube-scheduler was asked: a cluster's files and one pod."""

import asyncio
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.config.loading import load
from berth.objects.pods.pod import Pod
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.running.engine import after
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.outcome import ERROR
from berth.simulation.running.scores import node_scores
from tests.chance.documents import documents_of

ORDERS = 50
"""How many seeds and orders of pods are tried before a preemption of others counts as a difference."""


async def differences(scenario, theirs):
    """Each thing that a simulation of the pod on that cluster comes to otherwise."""
    # A simulation has an event loop of its own.
    return await asyncio.to_thread(_differences, scenario, theirs)


def _differences(scenario, theirs):
    with tempfile.TemporaryDirectory(prefix="berth-simulate-") as folder:
        asked = Asked(Path(folder), scenario)
        if theirs.nominated:
            return _victims(asked, theirs)
        ours = asked.outcome()
        if ours["preemptions"]:
            return [f"{theirs.node or theirs.message}: preempts {asked.victims(ours)}"]
        if ours["pending"]:
            return list(_reasons(ours["pending"][0], theirs))
        return list(_node(asked, ours["placements"][0]["node"], theirs))


def _reasons(pending, theirs):
    if theirs.node:
        yield f"bound to {theirs.node}: {pending['message']}"
    elif pending["reason"] == ERROR:
        # Nodes are asked at the same time: which one's error ends an attempt is up to chance.
        if not _is_error(theirs.message):
            yield f"{theirs.message}: {pending['message']}"
    elif theirs.message != pending["message"]:
        yield f"{theirs.message}: {pending['message']}"


def _is_error(message):
    return not message.startswith("0/")


def _node(asked, node, theirs):
    if not theirs.node:
        yield f"{theirs.message}: goes to {node}"
    elif node != theirs.node:
        scores = asked.scores(node, theirs.node)
        if scores[node].total != scores[theirs.node].total:
            yield f"bound to {theirs.node}: goes to {node}, scores {scores}"


def _victims(asked, theirs):
    """Which of equal candidates makes room is up to chance, and to the order of the pods of a node."""
    found = set()
    for ours in asked.outcomes():
        victims = asked.victims(ours)
        if victims == {theirs.nominated: theirs.victims}:
            return []
        found.add(str(victims))
    return [f"nominated to {theirs.nominated}, victims {sorted(theirs.victims)}: {sorted(found)}"]


class Asked:
    """One question as files; the pod in question is the only one that waits."""

    def __init__(self, folder: Path, scenario) -> None:
        self._others, self._pod = documents_of(scenario)
        self._cluster, self._configuration = folder / "cluster.json", folder / "scheduler.json"
        self._configuration.write_text(json.dumps(scenario["config"]), encoding="utf-8")
        self._write(self._others)

    def _write(self, others) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": [*others, self._pod]}
        self._cluster.write_text(json.dumps(listed), encoding="utf-8")

    def outcome(self, seed=0):
        """What `berth simulate` prints as JSON."""
        arguments = ["run", str(self._cluster), "--config", str(self._configuration)]
        done = CliRunner().invoke(command, [*arguments, "--seed", str(seed), "-o", "json"])
        assert done.exit_code in {0, 3}, done.output
        return json.loads(done.stdout)

    def outcomes(self) -> Iterator[dict]:
        """The same with other seeds, and with the pods in other orders."""
        draw = random.Random(ORDERS)
        for seed in range(ORDERS):
            yield self.outcome(seed)
            draw.shuffle(self._others)
            self._write(self._others)

    def victims(self, outcome) -> dict[str, set[str]]:
        """Who has to go for the pod the first time, by node."""
        first = min((each["atSeconds"] for each in outcome["preemptions"]), default=0.0)
        found: dict[str, set[str]] = {}
        for each in outcome["preemptions"]:
            if each["atSeconds"] == first:
                found.setdefault(each["node"], set()).add(each["pod"])
        return found

    def scores(self, *names):
        """What these nodes score for the pod."""
        cluster = read_cluster([self._cluster])
        (pod,) = (each for each in cluster.of(Pod).values() if not each.node_name)

        async def asked(simulation):
            return await node_scores(simulation.core, pod, names)

        return after(
            cluster.running(), SimulationOptions(load(self._configuration.read_text(encoding="utf-8"))), asked
        )
