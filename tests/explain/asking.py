"""A whole scheduler in virtual time that is asked for explanations, and whose proposals are carried out."""

import asyncio
import re

import msgspec
from msgspec.structs import replace

from berth.explain.attempt_log import AttemptLog
from berth.explain.explainer import ORDINARY
from berth.framework.extender import ExtenderVerdicts
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.devices import ResourceSlice
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node import Node
from berth.objects.pods.pod import Pod, PodObject
from berth.objects.volumes.storage import PersistentVolumeClaim
from berth.sandbox.patches.json_patch import json_patch
from berth.scheduler.loop.fair_turn import FairTurn
from berth.scheduler.pages.explaining import new_explainer
from tests.scenarios.kit.cluster import Cluster

CLAIMS = (PersistentVolumeClaim, ResourceClaim)


class Asked(Cluster):
    """A cluster whose scheduler explains itself."""

    def __init__(self, *plugins, **options):
        super().__init__(*plugins, **options)
        self._plugins = {plugin.name: plugin for plugin in plugins if not isinstance(plugin, str)}
        self.api.grace_seconds = 5
        self.log = AttemptLog()
        turn = FairTurn(asyncio.Lock(), lambda: False, self.clock).question("").__enter__()
        self.explainer = new_explainer(self.core, self.log, turn, lambda: self.api.all(Pod))

    def _on_record(self, record):
        super()._on_record(record)
        self.log.on_record(record)

    async def explain(self, name="p", wanted=ORDINARY, namespace="default"):
        """The explanation of a pod."""
        return await self.explainer.explain(namespace, name, wanted)

    def apply(self, proposal, name="p"):
        """Do what is proposed: a pending pod is made again with another spec, a node changed or added."""
        match proposal.target.kind:
            case "Node":
                before = {} if not proposal.target.name else as_json(self.node(proposal.target.name))
                node = self.add(msgspec.convert(json_patch(before, proposal.patch), Node))
                if not proposal.target.name:
                    self._publish_devices(node)
            case "Pod":
                self._make_pod_again(proposal, name)
            case "Plugin":
                (more,) = re.findall(r"must leave (\d+)m more of cpu", proposal.sentence)
                self._plugins[proposal.target.name].milli_cpu += int(more)
            case "ResourceClaimTemplate":
                self._make_pod_of_another_template(proposal, name)
            case kind:
                self._make_claim_again(proposal, {each.__name__: each for each in CLAIMS}[kind])

    def _publish_devices(self, node):
        """Do what drivers do on a new node: they publish what they do on the first one."""
        for each in [each for each in self.api.all(ResourceSlice) if each.spec.node_name == "n0"]:
            name = f"{each.name}-{node.name}"
            spec = replace(each.spec, node_name=node.name, pool=replace(each.spec.pool, name=name))
            self.add(replace(each, metadata=ObjectMeta(name=name), spec=spec))

    def _make_claim_again(self, proposal, kind):
        claim = next(each for each in self.api.all(kind) if each.name == proposal.target.name)
        made = msgspec.convert(json_patch(as_json(claim), proposal.patch), kind)
        self.remove(claim)
        self.add(replace(made, metadata=again(made.metadata)))

    def _make_pod_again(self, proposal, name):
        pod = self.pod(name)
        written = json_patch(as_json(pod.written()), proposal.patch)
        made = msgspec.convert(written, PodObject)
        self.remove(pod)
        metadata = again(made.metadata)
        for volume in [each for each in made.spec.volumes if "ephemeral" in each]:
            self._make_claim_of_volume(volume, f"{name}-{volume['name']}", metadata.uid)
        self.add(Pod.of(metadata, made.spec))

    def _make_claim_of_volume(self, volume, name, owner):
        """Do what the controller of ephemeral volumes does for a pod that was made again."""
        claim = next(each for each in self.api.all(PersistentVolumeClaim) if each.name == name)
        spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
        self.remove(claim)
        changed = replace(claim.spec, storage_class_name=spec["storageClassName"])
        self.add(replace(claim, metadata=again(claim.metadata, owner), spec=changed))

    def _make_pod_of_another_template(self, proposal, name):
        """Change the template, make the pod again, and do what the controller of resource claims does."""
        pod = self.pod(name)
        claim = next(each for each in self.api.all(ResourceClaim) if each.metadata.owner_references)
        template = {"spec": {"spec": as_json(claim)["spec"]}}
        spec = json_patch(template, proposal.patch)["spec"]["spec"]
        made = msgspec.convert(as_json(claim) | {"spec": spec}, ResourceClaim)
        metadata = again(pod.metadata)
        self.remove(pod)
        self.remove(claim)
        self.add(replace(made, metadata=again(claim.metadata, metadata.uid)))
        self.add(Pod.of(metadata, pod.spec, pod.status))


def again(metadata, owner=""):
    """Another object of the same name, and its owner."""
    owners = [replace(each, uid=owner) for each in metadata.owner_references]
    return replace(metadata, uid=f"{metadata.uid}-again", owner_references=tuple(owners))


def as_json(obj):
    """The object as the API has it."""
    return msgspec.json.decode(msgspec.json.encode(obj))


class Refuses:
    """An extender that turns nodes down, each with a text, all of them with one, or fails."""

    filters, prioritizes, preempts, binds, weight, ignorable = True, False, False, False, 1, False

    def __init__(self, name="http://quota", nodes=None, *, error=None):
        self.name, self.nodes, self.error = name, nodes, error

    def interested(self, pod):
        return pod.name == "p"

    async def filter(self, attempt, nodes):
        del attempt
        if self.error is not None:
            raise self.error
        names = [node.name for node in nodes]
        failed = self.nodes if self.nodes is not None else dict.fromkeys(names, "over quota")
        return ExtenderVerdicts([name for name in names if name not in failed], failed)
