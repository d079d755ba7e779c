"""A whole cluster by chance, and which features its pods have how often."""

import copy
from dataclasses import dataclass
from typing import Any

from tests.chance import devices, volumes
from tests.chance.draw import APPS, TEAMS, Chance, thing
from tests.chance.nodes import nodes
from tests.chance.pods import placed, pods
from tests.chance.profiles import configuration

FEATURES = (
    "unschedulable",
    "taints",
    "tolerations",
    "containers",
    "extended",
    "ports",
    "node_affinity",
    "node_selector",
    "podAffinity",
    "podAntiAffinity",
    "spreading",
)
APART = ("volumes", "devices", "priorities", "profiles")
RARE = {"node_selector": 0.3, "unschedulable": 0.3, "podAntiAffinity": 0.6, "podAffinity": 0.7}
# What each subject has in it for sure, and how often.
SUBJECTS = {
    "placing": {},
    "profiles": {"profiles": 0.9},
    "volumes": {"volumes": 0.8},
    "devices": {"devices": 0.8},
    "preemption": {"priorities": 0.9},
    "everything": {"volumes": 0.2, "devices": 0.2, "priorities": 0.3, "profiles": 0.3},
}


@dataclass(frozen=True)
class Drawn:
    """What a run is made of."""

    configuration: dict[str, Any]
    objects: list[dict[str, Any]]
    pods: list[dict[str, Any]]


def draw(subject, seed, nodes_count=14, pods_count=60):
    """The cluster, configuration and pods of that subject and seed."""
    chance = Chance(f"{subject}-{seed}")
    mix = {feature: chance.choice((0, 0.1, 0.25, 0.5)) * RARE.get(feature, 1) for feature in FEATURES}
    mix |= dict.fromkeys(APART, 0) | SUBJECTS[subject]
    there = nodes(chance, mix, nodes_count)
    names = [each["metadata"]["name"] for each in there]
    objects = [*_surroundings(chance), *there]
    if mix["volumes"]:
        objects += volumes.storage(chance, names)
    if mix["devices"]:
        objects += devices.devices(chance, names)
    crowd = nodes_count * (4 if mix["priorities"] else 2)
    objects += placed(chance, mix, crowd, names)
    configured = configuration(chance, 3, names) if mix["profiles"] else configuration(chance, 0, names)
    return Drawn(configured, objects, pods(chance, mix, pods_count, names))


def admissible(drawn):
    """The same as far as a real API server admits it.

    Overhead of pods takes a RuntimeClass, and the namespace that claims are in is there before its labels.
    """
    made = copy.deepcopy(drawn)
    for each in (*made.objects, *made.pods):
        if each["kind"] == "Pod":
            each["spec"].pop("overhead", None)
        elif each["kind"] == "ResourceClaim":
            for request in each["spec"]["devices"]["requests"]:
                request.get("exactly", {}).pop("adminAccess", None)
    return made


def _surroundings(chance):
    """Namespaces, priorities, services and budgets."""
    made = [thing("Namespace", name) for name in TEAMS]
    for each in made:
        each["metadata"]["labels"] = {
            "kubernetes.io/metadata.name": each["metadata"]["name"],
            "resource.kubernetes.io/admin-access": "true",
            **TEAMS[each["metadata"]["name"]],
        }
    for name, value, others in (
        ("high", 1000, {}),
        ("low", 1, {}),
        ("polite", 500, {"preemptionPolicy": "Never"}),
    ):
        made.append(thing("PriorityClass", name, "scheduling.k8s.io/v1", value=value, **others))
    for app in chance.some(APPS, 0, 2):
        spec = {"selector": {"app": app}, "ports": [{"port": 80}]}
        made.append(thing("Service", f"of-{app}", namespace="default", spec=spec))
    for app in chance.some(APPS, 0, 2):
        spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
        budget = thing("PodDisruptionBudget", f"of-{app}", "policy/v1", "default", spec=spec)
        budget["status"] = {"disruptionsAllowed": chance.choice((0, 1, 3)), "observedGeneration": 1}
        made.append(budget)
    return made
