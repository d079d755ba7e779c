"""The objects that workloads.yaml describes, and a core that has them."""

import json
import random
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from berth.cache.cache import Cache
from berth.config import load
from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.mirrors.listers import Listers
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.volumes.storage import PersistentVolume, PersistentVolumeClaim
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.queue.pools.nominator import Nominator
from berth.snapshot.snapshot import Snapshot
from berth.testing.handles import make_handle

ZONES, RACKS, APPS = 3, 50, 200
NUMBER = re.compile(r"\$(i|n|zone|rack|app)")

read_node, read_pod = decoder(Node), decode_pod


@cache
def described():
    """What workloads.yaml says."""
    return yaml.safe_load(Path(__file__).with_name("workloads.yaml").read_text(encoding="utf-8"))


class Template:
    """An object with numbers left open."""

    def __init__(self, document):
        self._text = json.dumps(document).replace('"#i"', "$i")

    def bytes(self, i, n=None):
        """The object of that number; `n` is its own where others may have the same `i`."""
        zone = i % ZONES
        values = {
            "i": i,
            "n": i if n is None else n,
            "zone": zone,
            "rack": i % (ZONES * RACKS),
            "app": i % APPS,
        }
        return NUMBER.sub(lambda found: str(values[found[1]]), self._text).encode()


def node_bytes(n):
    """The API server's bytes of n nodes."""
    template = Template(described()["node"])
    return [template.bytes(i) for i in range(n)]


def placed_pods(n, nodes):
    """n pods, spread over the nodes."""
    document = described()["placed"]
    every = {
        step: Template({**document, "spec": {**document["spec"], "affinity": affinity}})
        for step, affinity in described()["placed_every"].items()
    }
    plain = Template(document)
    for i in range(n):
        # Apps and nodes are numbered out of step, so that an app's pods are all over the cluster.
        template = next((every[step] for step in every if (i // APPS) % step == 0), plain)
        yield read_pod(template.bytes(i)).placed_on(f"node-{(i * 7 + i // APPS) % nodes}")


def pod_template(spec=None):
    """Pods to be decided on."""
    document = described()["pod"]
    return Template({**document, "spec": {**document["spec"], **(spec or {})}})


def bound_claims(n):
    """n claims, each bound to a volume in one zone."""
    for i in range(n):
        zone = {"topology.kubernetes.io/zone": f"zone-{i % ZONES}"}
        volume = {
            "metadata": {"name": f"volume-{i}", "uid": f"volume-{i}", "labels": zone},
            "spec": {
                "csi": {"driver": "csi.example.com", "volumeHandle": f"h{i}"},
                "accessModes": ["ReadWriteOnce"],
            },
            "status": {"phase": "Bound"},
        }
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        claim = {
            "metadata": {
                "name": f"claim-{i}",
                "namespace": "default",
                "uid": f"claim-{i}",
                "annotations": bound,
            },
            "spec": {"volumeName": f"volume-{i}", "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Bound"},
        }
        yield (
            decoder(PersistentVolume)(json.dumps(volume).encode()),
            decoder(PersistentVolumeClaim)(json.dumps(claim).encode()),
        )


@dataclass
class Core:
    """Cache, snapshot and the default profile, decided on without a queue."""

    cache: Cache = field(default_factory=Cache)
    snapshot: Snapshot = field(default_factory=Snapshot)
    listers: Listers = field(default_factory=Listers)

    def __post_init__(self):
        nominator = Nominator(lambda *_: None, lambda _: None)
        self.handle = make_handle(self.snapshot, listers=self.listers, nominator=nominator)
        self.framework = self.default_profile()
        search = NodeSearch(nominator, Rotation())
        self.algorithm = SchedulePod(search, random.Random(1), EquivalenceCache(self.snapshot))

    def default_profile(self):
        """A framework of the default profile on these nodes."""
        made = build_frameworks(load(None).profiles, IN_TREE, lambda _: self.handle)["default-scheduler"]
        # What it costs to make room is not part of the figures of a decision.
        made.plugins.post_filter = []
        return made

    @classmethod
    def of(cls, nodes, placed=0, claims=0):
        """A core that has so many nodes, placed pods and bound claims."""
        core = cls()
        for data in node_bytes(nodes):
            core.cache.add_node(read_node(data))
        for pod in placed_pods(placed, nodes):
            core.cache.add_pod(pod)
        for volume, claim in bound_claims(claims):
            core.listers.persistent_volumes.put(volume)
            core.listers.persistent_volume_claims.put(claim)
        core.cache.update_snapshot(core.snapshot)
        return core

    async def decide(self, pod):
        """The decision on a pod, as in a cycle."""
        record = CycleRecord(pod, "", 1, b"", b"", 0, 0, 0)
        state = CycleState()
        state.write(CycleRecord, record)
        return await self.algorithm.decide(self.framework, Attempt(pod, self.snapshot, state, record))
