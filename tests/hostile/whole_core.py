"""A whole scheduler in this process: handlers of every kind, the queue, and nodes."""

import asyncio
import json
from functools import cache

from berth.config import load, parse_feature_gates
from berth.config.releases.release import effective
from berth.objects.node_decoding import decode_node
from berth.objects.pods.pod_decoding import decode_pod
from berth.simulation.running.handlers import handlers_of
from tests.default_core import DefaultCore
from tests.hostile.arena import node, pod
from tests.unit.plugins.dynamic_resources.kit import FakeClaimWriter

GATES = (
    "GenericWorkload=true,CompositePodGroup=true,DRAWorkloadResourceClaims=true,"
    "TopologyAwareWorkloadScheduling=true,DRADeviceTaints=true,"
    "DRADeviceTaintRules=true,DRAConsumableCapacity=true,DRAPartitionableDevices=true,DRAExtendedResource=true,"
    "DRADerivedAttributes=true,DRADeviceCompatibilityGroups=true"
)
RELEASE = (1, 37)
"""The first one that has them all."""
PROFILE = "default-scheduler"


@cache
def loaded():
    """The default configuration, with every feature that reads one kind more."""
    return load(None, gates=parse_feature_gates([GATES], effective(RELEASE)))


def pod_document(name, *, owner="", **fields):
    """A pod of the default profile; `owner` is the kind of a controller that is called `s`."""
    document = pod(name, **fields)
    document["metadata"]["uid"] = name
    if owner:
        version = "v1" if owner == "ReplicationController" else "apps/v1"
        controller = {"apiVersion": version, "kind": owner, "name": "s", "uid": "s", "controller": True}
        document["metadata"]["ownerReferences"] = [controller]
    document["spec"].setdefault("schedulerName", PROFILE)
    return document


def node_document(number):
    """A roomy node with a hostname and a zone."""
    document = node(number)
    document["metadata"]["uid"] = document["metadata"]["name"]
    return document


class WholeCore(DefaultCore):
    """Six nodes, and any objects that are brought; one pod was scheduled, so that it is warm."""

    def __init__(self, nodes=6):
        super().__init__(loaded=loaded(), claims=FakeClaimWriter())
        self.handlers = handlers_of(self.core)
        for number in range(nodes):
            self.bring(decode_node(json.dumps(node_document(number)).encode()))
        self.take_over()
        self.schedule(decode_pod(json.dumps(pod_document("warm")).encode()))

    @property
    def framework(self):
        """The default profile."""
        return self.core.profiles.frameworks[PROFILE]

    def bring(self, obj):
        """The watch brings an object."""
        self.handlers[type(obj)].on_add(obj)

    def take(self, obj):
        """The object is deleted."""
        self.handlers[type(obj)].on_delete(obj)

    def take_over(self):
        """Bring the snapshot up to date."""
        self.core.cache.update_snapshot(self.core.snapshot)

    def schedule(self, pod):
        """A pod comes, and is tried once."""
        self.core.pod_handler.on_add(pod)
        return self.try_next()

    def try_next(self):
        """Try the pod whose turn it is, if there is one; answers its node, empty if none."""
        record = self.core.queue.pop()
        if record is None:
            return ""
        asyncio.run(self.core.schedule_one.schedule(record))
        bound = self.core.cache.get_pod(record.pod.uid)
        self.background.close()
        del self.background.work[:]
        return bound.node_name if bound else ""
