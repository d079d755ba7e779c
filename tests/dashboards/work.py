"""Work for the pictures: pods that fit and that do not, groups, preemption, failures, deletions."""

import asyncio
import copy
import json
import math
import os
import random
import signal
import sys
from collections import deque
from contextlib import suppress
from itertools import count
from pathlib import Path

import yaml

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ClientError
from berth.client.resources import NAMESPACES, NODES, PODS
from berth.client.transport import Transport
from berth.demo.dataset import open_dataset
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from berth.sandbox.free_port import free_port
from berth.sandbox.kubeconfig import kubeconfig_text
from tests.e2e.fault_rules import Fault
from tests.e2e.faults import BINDING, FaultProxy
from tests.go_toolchain import ROOT, build

READY_SECONDS = 60.0
KINDS = [ROOT / f"kustomize/third-party-crds/{name}.yaml" for name in ("podgroups", "elasticquotas")]
VERSION = "scheduling.x-k8s.io/v1alpha1"
GROUPS = f"/apis/{VERSION}/namespaces/default/podgroups"
QUOTAS = f"/apis/{VERSION}/namespaces/research/elasticquotas"
WATCHES = r"/api/v1/pods\?.*watch=true"
USUAL = (
    {"fault": Fault.STATUS_BEFORE, "path": BINDING, "rate": 0.06, "status": 403},
    {"fault": Fault.CUT_WATCH, "path": WATCHES, "events": 600},
)
ABSENT = {"fault": Fault.STATUS_BEFORE, "path": WATCHES, "status": 500}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEVELS = "/apis/scheduling.k8s.io/v1/priorityclasses"
TIGHT = 3
"""Nodes for one pod each, where pods of higher priority make room for themselves."""
NAMED = "berth-main-0"

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection:
  {{leaderElect: true, resourceName: berth-main, leaseDuration: 8s, renewDeadline: 5s, retryPeriod: 1s}}
podMaxBackoffSeconds: 4
profiles:
- schedulerName: default-scheduler
  plugins: {plugins}
- schedulerName: gpu-share
  plugins: {plugins}
"""
ORDER = "{queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: queues}]}}"


class Sidecar:
    """A plugin of the run: its command, its entry in the list, where it shows its metrics."""

    def __init__(self, name, command, **entry):
        self.name, self.command, self.entry = name, command, entry
        self.port = free_port()
        self.child = None

    async def start(self, folder, sockets):
        """Start it; its metrics are where Prometheus looks."""
        address = f"unix:{sockets / self.name}.sock"
        self.entry = {"name": self.name, "address": address, "timeout": "200ms", **self.entry}
        pages = {"BERTH_METRICS_ADDRESS": f"127.0.0.1:{self.port}"}
        command = [*self.command, "--address", address]
        self.child = await Child.start(self.name, command, folder / f"{self.name}.log", pages)


def sidecars(folder):
    """The plugins of the run; one stands in shadow."""
    gpu_share = program("berth-gpu-share")
    profiles = ["default-scheduler", "gpu-share"]
    coscheduling = build(".", folder / "coscheduling", folder=ROOT / "out-of-tree-plugins/coscheduling")
    # Filter may be passed over here, so that the panel of failures has some.
    careless = {"filter": "Ignore", "score": "Ignore"}
    written = ["gpu-share.berth.dev/*"]
    upcoming = [sys.executable, "-m", "tests.dashboards.next_gpu_share"]
    queues = [program("berth-queues")]
    return [
        Sidecar(
            "gpu-share", [gpu_share], profiles=profiles[1:], failurePolicy=careless, metadataKeys=written
        ),
        Sidecar("gpu-share-next", upcoming, profiles=profiles[1:], shadow=True),
        Sidecar("coscheduling", [str(coscheduling)], profiles=profiles[:1]),
        Sidecar("queues", queues, extensionPoints=["queueSort", "filter", "postFilter", "reserve"]),
    ]


class Work:
    """The processes of a run, and the pods that they are given."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        self.surface = Surface.free()
        self.plugins = []
        self.numbers = count()
        self.chance = random.Random(0)
        self.alive = []

    async def start(self, sockets):
        """Start everything; the scheduler reaches its API server through a proxy that fails some bindings."""
        kubeconfig = self.folder / "sandbox.kubeconfig"
        await self._start("sandbox", "sandbox", "up", "--kubeconfig", str(kubeconfig), awaited=kubeconfig)
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)))
        self.stack.push_async_callback(transport.aclose)
        self.transport, self.api = transport, Api(transport)
        self.proxy = await self.stack.enter_async_context(FaultProxy.started(0))
        await self.proxy.ask("target", kubeconfig=str(kubeconfig))
        proxied = self.folder / "kubeconfig"
        proxied.write_text(kubeconfig_text(f"http://127.0.0.1:{await self.proxy.ask('listen', name='all')}"))
        self.plugins = sidecars(self.folder)
        for plugin in self.plugins:
            await plugin.start(self.folder, sockets)
            self.stack.push_async_callback(plugin.child.stop)
        await self._cluster()
        await self.proxy.rules(*USUAL)
        configuration, listed = self.folder / "scheduler.yaml", self.folder / "plugins.yaml"
        configuration.write_text(CONFIGURATION.format(kubeconfig=proxied, plugins=ORDER))
        entries = {"plugins": [plugin.entry for plugin in self.plugins]}
        listed.write_text(json.dumps({"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", **entries}))
        flags = ("--bind-address=127.0.0.1", f"--secure-port={self.surface.port}")
        files = (f"--config={configuration}", f"--plugins={listed}")
        allowed = "--authorization-always-allow-paths=/*"
        scheduler = await self._start("scheduler", "scheduler", *files, *flags, allowed)
        await self.surface.wait_ready(scheduler, READY_SECONDS)

    def targets(self):
        """What Prometheus is to scrape: address, scheme, and the name of the instance."""
        yield f"127.0.0.1:{self.surface.port}", "https", f"{NAMED}:10259"
        for number, plugin in enumerate(self.plugins):
            yield f"127.0.0.1:{plugin.port}", "http", f"{NAMED}:{9461 + number}"

    async def run(self, seconds):
        """Work for so long, all kinds of it side by side."""
        kinds = (
            *(self.steady(), self.hopeless(), self.groups()),
            *(self.preempting(), self.limited(), self.failing(), self.cut_off()),
        )
        tasks = [asyncio.create_task(kind) for kind in kinds]
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def steady(self):
        """Pods of the trace, in waves; old ones go."""
        shapes = open_dataset().load().pods
        for turn in count():
            for _ in range(round(4 + 3 * math.sin(turn / 12))):
                shape = copy.deepcopy(self.chance.choice(shapes))
                shape["metadata"]["namespace"] = "default"
                if shape["spec"]["schedulerName"] != "gpu-share":
                    shape["spec"]["schedulerName"] = "default-scheduler"
                await self.submit(shape)
            while len(self.alive) > 160:
                await self.delete(self.alive.pop(0))
            await asyncio.sleep(0.5)

    async def hopeless(self):
        """Pods that fit nowhere come and, some time later, go."""
        while True:
            kept = [await self.submit(plain({"cpu": "400"})) for _ in range(4)]
            for _ in range(4):
                await asyncio.sleep(5)
                kept.append(await self.submit(plain({"cpu": "400"})))
            for each in kept:
                await self.delete(each)

    async def groups(self):
        """Groups of pods that wait for each other."""
        while True:
            name = f"group-{next(self.numbers)}"
            group = {"apiVersion": VERSION, "kind": "PodGroup", "metadata": {"name": name}}
            await self.post(GROUPS, {**group, "spec": {"minMember": 4, "scheduleTimeoutSeconds": 3}})
            labels = {"scheduling.x-k8s.io/pod-group": name}
            # Every other group has a member that fits nowhere for now: the rest waits, and gives up.
            amounts = ["1", "1", "1", self.chance.choice(("1", "400"))]
            members = [await self.submit(plain({"cpu": amount}, labels=labels)) for amount in amounts]
            await asyncio.sleep(4)
            for each in members:
                await self.delete(each)

    async def preempting(self):
        """Pods of a higher priority each time, for nodes that are full."""
        selector, there = {"tight": "yes"}, deque()
        for value in count():
            level = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            await self.post(LEVELS, {**level, "metadata": {"name": f"level-{value}"}, "value": value})
            for _ in range(TIGHT):
                pod = plain({"cpu": "2"}, priorityClassName=f"level-{value}", nodeSelector=selector)
                there.append(await self.submit(pod))
                if len(there) > 4 * TIGHT:
                    await self.delete(there.popleft())
                await asyncio.sleep(1)

    async def limited(self):
        """More pods of a namespace than its quota lets in at a time."""
        there = deque()
        while True:
            pod = plain({"cpu": "1"})
            pod["metadata"]["namespace"] = "research"
            there.append(await self.submit(pod))
            if len(there) > 12:
                await self.delete(there.popleft())
            await asyncio.sleep(1)

    async def failing(self):
        """A plugin that now and then does not answer for a moment."""
        plugin = self.plugins[0].child
        while True:
            await asyncio.sleep(18)
            os.kill(plugin.pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(0.7)
            finally:
                os.kill(plugin.pid, signal.SIGCONT)

    async def cut_off(self):
        """Now and then pods cannot be watched for longer than a lease may take to be renewed."""
        while True:
            await asyncio.sleep(35)
            await self.proxy.rules(*USUAL[:1], ABSENT)
            await asyncio.sleep(12)
            await self.proxy.rules(*USUAL)

    async def submit(self, pod):
        """Create a pod under a name of its own; which it is."""
        metadata = pod["metadata"]
        metadata["name"] = f"pod-{next(self.numbers)}"
        await self.api.create(PODS, metadata["namespace"], json.dumps(pod).encode())
        key = (metadata["namespace"], metadata["name"])
        if "app" in metadata.get("labels", {}):
            self.alive.append(key)
        return key

    async def post(self, path, document):
        """Create an object of another kind."""
        await self.transport.request("POST", path, json.dumps(document).encode())

    async def delete(self, key):
        """Delete a pod, if it is still there."""
        path = "/api/v1/namespaces/{}/pods/{}?gracePeriodSeconds=0".format(*key)
        with suppress(ClientError):
            await self.transport.request("DELETE", path)

    async def _start(self, name, *arguments, awaited=None):
        command = [program("berth"), *arguments]
        environment = {"BERTH_TRACE_FILE": str(self.folder / "traces.jsonl")}
        child = await Child.start(name, command, self.folder / f"{name}.log", environment)
        self.stack.push_async_callback(child.stop)
        if awaited is not None:
            await child.wait_for(Path(awaited), READY_SECONDS)
        return child

    async def _cluster(self):
        for kind in KINDS:
            await self.post(DEFINITIONS, yaml.safe_load(kind.read_text()))
        for name in ("default", "research"):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            with suppress(ClientError):
                await self.api.create(NAMESPACES, "", json.dumps(document).encode())
        quota = {"apiVersion": VERSION, "kind": "ElasticQuota", "metadata": {"name": "research"}}
        await self.post(QUOTAS, {**quota, "spec": {"min": {"cpu": "8"}, "max": {"cpu": "8"}}})
        nodes = self.chance.sample(open_dataset().load().nodes, 40)
        for node in [*nodes, *map(tight, range(TIGHT))]:
            await self.api.create(NODES, "", json.dumps(node).encode())


def plain(requests, *, labels=None, **spec):
    """A pod of the default profile."""
    containers = [{"name": "main", "image": "app:1", "resources": {"requests": requests}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "labels": labels or {}},
        "spec": {"schedulerName": "default-scheduler", "containers": containers, **spec},
    }


def tight(number):
    """A node for one pod."""
    amounts = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    labels = {"tight": "yes", "kubernetes.io/hostname": f"tight-{number}"}
    metadata = {"name": f"tight-{number}", "labels": labels}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
