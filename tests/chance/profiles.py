"""Profiles of a configuration: arguments of plugins, weights, plugins that are left out."""

from tests.chance.affinity import default_constraints, node_affinity

RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
SCORING = (
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
FILTERING = ("NodePorts", "NodeAffinity", "TaintToleration", "PodTopologySpread", "InterPodAffinity")


def configuration(chance, count, names):
    """A configuration of the default profile and so many others; `names` are the nodes there are."""
    profiles = [{"schedulerName": "default-scheduler"}]
    profiles += [_profile(chance, f"other-{i}", names) for i in range(count)]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "", "qps": -1, "contentType": "application/json"},
        "leaderElection": {"leaderElect": False},
        "profiles": profiles,
    }


def _profile(chance, name, names):
    arguments = {
        "NodeResourcesFit": _fit(chance),
        "NodeResourcesBalancedAllocation": {"resources": _weighted(chance, heaviest=1)},
        "InterPodAffinity": {
            "hardPodAffinityWeight": chance.choice((0, 1, 50, 100)),
            "ignorePreferredTermsOfExistingPods": chance.maybe(0.5),
        },
        "PodTopologySpread": {"defaultingType": "List", "defaultConstraints": default_constraints(chance)},
        "NodeAffinity": {"addedAffinity": node_affinity(chance, names)},
    }
    chosen = chance.some(arguments, 1, 4)
    return {
        "schedulerName": name,
        "pluginConfig": [{"name": plugin, "args": arguments[plugin]} for plugin in chosen],
        "plugins": _plugins(chance),
    }


def _fit(chance):
    kind = chance.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy = {"type": kind, "resources": _weighted(chance, heaviest=100)}
    if kind == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": _shape(chance)}
    made = {"scoringStrategy": strategy}
    return made | ({"ignoredResources": ["example.com/gpu"]} if chance.maybe(0.3) else {})


def _weighted(chance, heaviest):
    return [{"name": name, "weight": chance.randint(1, heaviest)} for name in chance.some(RESOURCES, 1, 4)]


def _shape(chance):
    utilizations = sorted(chance.sample(range(101), chance.randint(1, 4)))
    return [{"utilization": at, "score": chance.randint(0, 10)} for at in utilizations]


def _plugins(chance):
    """Other weights for some, and some that neither score nor filter."""
    weighted = chance.some(SCORING, 0, 3)
    out = [plugin for plugin in chance.some(SCORING, 0, 2) if plugin not in weighted]
    points = {
        "score": {
            "disabled": [{"name": plugin} for plugin in (*weighted, *out)],
            "enabled": [{"name": plugin, "weight": chance.randint(1, 20)} for plugin in weighted],
        }
    }
    if chance.maybe(0.3):
        points["filter"] = {"disabled": [{"name": plugin} for plugin in chance.some(FILTERING, 1, 2)]}
    return points
