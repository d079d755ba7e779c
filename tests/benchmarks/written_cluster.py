"""An API server whose lists were written beforehand, so that it costs next to no CPU itself.

Bindings are taken, and shown to the watches of pods; whatever else is written is accepted and forgotten.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from random import Random
from urllib.parse import parse_qs, urlsplit

from tests.benchmarks.workloads import node_bytes
from tests.e2e.faults import pod

VERSION = 4_000_000
CREATED = "2026-01-02T03:04:05Z"
NONE = b'{"metadata":{"resourceVersion":"%d"},"items":[]}' % VERSION
PODS = "/api/v1/pods"
BINDING = re.compile(r"^/api/v1/namespaces/default/pods/([^/]+)/binding$")
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


class Pages:
    """The pages of a list of these documents."""

    def __init__(self, documents):
        self._written = [json.dumps(each, separators=(",", ":")).encode() for each in documents]

    def page(self, first, limit):
        """So many of them, all where `limit` is 0."""
        end = first + limit if limit else len(self._written)
        token = str(end) if end < len(self._written) else ""
        about = json.dumps({"resourceVersion": str(VERSION), "continue": token}).encode()
        return b'{"metadata":%b,"items":[%b]}' % (about, b",".join(self._written[first:end]))


def nodes(count):
    """Nodes as an API server returns them."""
    for i, each in enumerate(node_bytes(count)):
        yield stored(json.loads(each), i)


def reported_nodes(count):
    """Nodes as kubelets in a cloud report them, about 13 KB each: 50 of the cluster's 600 images."""
    pool, chance = [_image(number) for number in range(600)], Random(0)
    for i in range(count):
        name, zone = f"ip-10-{i // 250}-{i % 250}.eu-west-1.compute.internal", f"eu-west-1{'abc'[i % 3]}"
        amounts = {
            "cpu": "15890m",
            "memory": f"{60_000_000 + i}Ki",
            "pods": "234",
            "ephemeral-storage": "71Gi",
        }
        status = {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [_condition(kind) for kind in ("MemoryPressure", "DiskPressure", "Ready")],
            "images": chance.sample(pool, 50),
            "nodeInfo": {"kubeletVersion": "v1.36.0", "architecture": "amd64"},
        }
        metadata = {"name": name, "labels": _cloud_labels(name, zone, i), "annotations": _annotations(i)}
        yield stored(
            {"metadata": metadata, "spec": {"providerID": f"aws:///{zone}/i-{i:017x}"}, "status": status}, i
        )


def _image(number):
    repository = f"registry.example.com/team-{number % 40}/service-{number}"
    digest = sha256(b"%d" % number).hexdigest()
    names = [f"{repository}@sha256:{digest}", f"{repository}:v1.{number % 30}.{number % 7}"]
    return {"names": names, "sizeBytes": 50_000_000 + number * 12_345}


def _condition(kind):
    text = {"reason": f"Kubelet{kind}", "message": f"what the kubelet says of {kind} in some words"}
    status = "True" if kind == "Ready" else "False"
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": CREATED,
        "lastTransitionTime": CREATED,
        **text,
    }


def _cloud_labels(name, zone, number):
    topology = {"region": "eu-west-1", "zone": zone}
    kind = {"arch": "amd64", "os": "linux", "instance-type": "m6i.4xlarge"}
    return {
        "kubernetes.io/hostname": name,
        "eks.amazonaws.com/nodegroup": f"group-{number % 12}",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "topology.ebs.csi.aws.com/zone": zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": kind["instance-type"],
        "team": f"team-{number % 40}",
        **{f"topology.kubernetes.io/{key}": value for key, value in topology.items()},
        **{f"failure-domain.beta.kubernetes.io/{key}": value for key, value in topology.items()},
        **{f"beta.kubernetes.io/{key}": value for key, value in kind.items()},
    }


def _annotations(number):
    return {
        "alpha.kubernetes.io/provided-node-ip": f"10.{number // 250}.{number % 250}.7",
        "csi.volume.kubernetes.io/nodeid": json.dumps({"ebs.csi.aws.com": f"i-{number:017x}"}),
        "node.alpha.kubernetes.io/ttl": "15",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }


def stored(document, number):
    """The document with what the API server adds when it is created."""
    digits = f"{number:012x}"
    document["metadata"] |= {
        "uid": f"7d9c1f3a-52b1-4c0e-9d8f-{digits}",
        "resourceVersion": str(VERSION - 10 * number - 1),
        "creationTimestamp": CREATED,
    }
    return document


def waiting_pod(name, uid, version):
    """A pod of one small container that waits, or waited."""
    document = pod(name, schedulerName="default-scheduler")
    document["metadata"] |= {"uid": uid, "resourceVersion": str(version), "creationTimestamp": CREATED}
    return document


class WrittenCluster:
    """Lists nodes and pods, takes bindings, and shows these to the pods' watch.

    `lists` has the documents by the plural of their kind.
    """

    def __init__(self, lists):
        self._pages = {plural: Pages(documents) for plural, documents in lists.items()}
        self._watches, self._version = [], VERSION
        self._tasks = set()

    @asynccontextmanager
    async def serving(self):
        """Serve on a port of this machine; gives the URL."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = LENGTH.search(head)
                body = await reader.readexactly(int(found[1])) if found else b""
                method, target, _ = head.split(b" ", 2)
                asked = urlsplit(target.decode())
                query = {name: values[0] for name, values in parse_qs(asked.query).items()}
                if "watch" in query:
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    self._watches += [writer] if asked.path == PODS else []
                    continue
                self._answer(writer, method, asked.path, query, body)
                await writer.drain()
        writer.transport.abort()

    def _answer(self, writer, method, path, query, body):
        status, answer = b"200 OK", NONE
        if method != b"GET":
            status, answer = b"201 Created", b"{}"
            if found := BINDING.match(path):
                self._bind(found[1], json.loads(body))
        elif listed := self._pages.get(path.rpartition("/")[2]):
            answer = listed.page(int(query.get("continue", 0)), int(query.get("limit", 0)))
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(answer)))
        writer.write(answer)

    def _bind(self, name, binding):
        self._version += 1
        document = waiting_pod(name, binding["metadata"]["uid"], self._version)
        document["spec"]["nodeName"] = binding["target"]["name"]
        event = json.dumps({"type": "MODIFIED", "object": document}).encode() + b"\n"
        for watch in self._watches:
            watch.write(b"%x\r\n%b\r\n" % (len(event), event))
