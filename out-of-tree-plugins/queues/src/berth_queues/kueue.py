"""Kueue's ClusterQueues, Cohorts and LocalQueues as Queues, and what of them has no counterpart.

Source: Kueue apis/kueue/v1beta2 (v0.14), and v1beta1 and v1alpha1 where fields have other names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth_sdk.quantity import parse

Document = Mapping[str, Any]
GROUP = "kueue.x-k8s.io"
EVERY_NAMESPACE = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}
SILENT = frozenset({"cohort", "cohortName", "parent", "parentName", "resourceGroups", "namespaceSelector"})
"""Fields that are carried over, with `fairSharing`."""
REMEDIES = {
    "preemption": "the plugin's argument reclaim says for all queues what is taken back",
    "queueingStrategy": "a pod that fits nowhere holds back no other one, as BestEffortFIFO has it",
    "flavorFungibility": "there are no flavors: pods choose nodes by their own selectors",
    "admissionChecks": "hold pods back by scheduling gates",
    "admissionChecksStrategy": "hold pods back by scheduling gates",
    "admissionScope": "pods are counted, and no objects of usage",
    "stopPolicy": "a limit of 0 lets no new pod in",
}
FIELDS = {"nominalQuota": "quota", "borrowingLimit": "borrowingLimit", "lendingLimit": "lendingLimit"}


@dataclass
class Imported:
    """The Queues that were made, and a sentence for all that they lack."""

    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)


def imported(documents: Iterable[Document]) -> Imported:
    """Return Kueue's objects as Queues."""
    found, cohorts, named = Imported(), dict[str, Document](), set[str]()
    ours = [each for each in documents if str(each.get("apiVersion", "")).startswith(f"{GROUP}/")]
    for document in ours:
        if document["kind"] == "ClusterQueue":
            named.add(_name(document))
        elif document["kind"] == "Cohort":
            cohorts[_name(document)] = document
        elif document["kind"] != "LocalQueue":
            found.lacking.append(f"{document['kind']} {_name(document)}: has no counterpart")
    for document in ours:
        if document["kind"] in {"ClusterQueue", "Cohort"}:
            _add(found, document, named)
    for parent in sorted({each["spec"].get("parent", "") for each in found.queues.values()} - {""}):
        # A cohort exists by being named.
        found.queues.setdefault(parent, _queue(parent, {}))
    for document in ours:
        if document["kind"] == "LocalQueue":
            _admit(found, document)
    return found


def _add(found: Imported, document: Document, cluster_queues: set[str]) -> None:
    spec, is_cohort = document.get("spec") or {}, document["kind"] == "Cohort"
    name = _cohort(_name(document), cluster_queues) if is_cohort else _name(document)
    where = f"{document['kind']} {_name(document)}"
    parents = ("parentName", "parent") if is_cohort else ("cohortName", "cohort")
    made = _amounts(found, where, spec.get("resourceGroups") or ())
    parent = next((spec[key] for key in parents if spec.get(key)), "")
    if parent:
        made["parent"] = _cohort(parent, cluster_queues)
    weight = (spec.get("fairSharing") or {}).get("weight")
    if weight is not None:
        made["weight"] = weight
    selector = spec.get("namespaceSelector")
    if selector is not None:
        made["namespaceSelector"] = dict(selector) or EVERY_NAMESPACE
    for key in sorted(spec.keys() - SILENT - {"fairSharing"}):
        found.lacking.append(f"{where}: spec.{key}: {REMEDIES.get(key, 'has no counterpart')}")
    found.queues[name] = _queue(name, made)


def _amounts(found: Imported, where: str, groups: Iterable[Document]) -> dict[str, Any]:
    """Return quota and limits, of all flavors together."""
    made: dict[str, Any] = {}
    for group in groups:
        flavors = group.get("flavors") or ()
        for flavor in flavors:
            for resource in flavor.get("resources") or ():
                for theirs, ours in FIELDS.items():
                    if resource.get(theirs) is not None:
                        made.setdefault(ours, {}).setdefault(resource["name"], []).append(resource[theirs])
        if len(flavors) > 1:
            names = ", ".join(flavor["name"] for flavor in flavors)
            text = f"flavors {names} are one quota: how much of it is of which nodes is not kept"
            found.lacking.append(f"{where}: spec.resourceGroups: {text}")
    return {ours: {name: _sum(each) for name, each in amounts.items()} for ours, amounts in made.items()}


def _sum(quantities: list[Any]) -> Any:
    """Return the only quantity as it is written, else the sum."""
    if len(quantities) == 1:
        return quantities[0]
    total = sum(map(parse, quantities))
    return str(int(total)) if total == int(total) else f"{int(total * 1000)}m"


def _admit(found: Imported, document: Document) -> None:
    queue, namespace = document["spec"].get("clusterQueue", ""), document["metadata"].get("namespace", "")
    where = f"LocalQueue {namespace}/{_name(document)}"
    if queue not in found.queues:
        found.lacking.append(f"{where}: spec.clusterQueue: {queue} is not among the objects")
        return
    names = found.queues[queue]["spec"].setdefault("namespaces", [])
    if namespace not in names:
        names.append(namespace)
    label = f"kueue.x-k8s.io/queue-name: {_name(document)}"
    found.lacking.append(
        f"{where}: pods name the queue by queues.berth.dev/queue: {queue}, in place of {label}"
    )


def _cohort(name: str, cluster_queues: set[str]) -> str:
    return f"{name}-cohort" if name in cluster_queues else name


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _queue(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "queues.berth.dev/v1alpha1", "kind": "Queue", "metadata": metadata, "spec": spec}
