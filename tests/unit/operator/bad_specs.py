"""Specs that the schema lets pass and no scheduler would run with.

Each with what the condition has to name: the field, or the plugin and its extension point, in the words of
kube-scheduler.
"""


def profile(**changes):
    return {"profiles": [{"schedulerName": "packing", **changes}]}


def config(name, **args):
    return profile(pluginConfig=[{"name": name, "args": args}])


def points(**sets):
    return profile(
        plugins={point: {"enabled": [{"name": one} for one in names]} for point, names in sets.items()}
    )


def without(point, *names):
    return profile(plugins={point: {"disabled": [{"name": one} for one in names]}})


FIT, SPREAD, VOLUMES = "NodeResourcesFit", "PodTopologySpread", "VolumeBinding"
BALANCED, AFFINITY, PREEMPTION = "NodeResourcesBalancedAllocation", "InterPodAffinity", "DefaultPreemption"
CPU = {"name": "cpu", "weight": 1}
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def strategy(**changes):
    return config(FIT, scoringStrategy=changes)


def ratio(shape):
    return strategy(
        type="RequestedToCapacityRatio", resources=[CPU], requestedToCapacityRatio={"shape": shape}
    )


def constraints(**changes):
    one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", **changes}
    return config(SPREAD, defaultConstraints=[one], defaultingType="List")


SCHEDULERS = [
    (points(filter=["NodeResourceFit"]), 'packing: FilterPlugin "NodeResourceFit"'),
    (points(score=["Nope"]), 'packing: ScorePlugin "Nope"'),
    (points(multiPoint=["Nope"]), 'packing: PreFilterPlugin "Nope"'),
    (points(queueSort=["NodeName"]), '"NodeName" does not extend QueueSortPlugin'),
    (points(bind=["NodeName"]), '"NodeName" does not extend BindPlugin'),
    (points(preEnqueue=["NodeName"]), '"NodeName" does not extend PreEnqueuePlugin'),
    (points(postFilter=["NodeName"]), '"NodeName" does not extend PostFilterPlugin'),
    (points(reserve=["NodeName"]), '"NodeName" does not extend ReservePlugin'),
    (points(permit=["NodeName"]), '"NodeName" does not extend PermitPlugin'),
    (points(preBind=["NodeName"]), '"NodeName" does not extend PreBindPlugin'),
    (points(score=["NodeName"]), '"NodeName" does not extend ScorePlugin'),
    (without("queueSort", "*"), 'queue sort plugin required for profile with scheduler name "packing"'),
    (without("bind", "*"), 'bind plugin is needed for profile with scheduler name "packing"'),
    (without("multiPoint", "*"), 'queue sort plugin required for profile with scheduler name "packing"'),
    (
        config(FIT, x=1),
        ".profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeResourcesFit",
    ),
    (config(FIT, ignoredResources="cpu"), "NodeResourcesFitArgs.ignoredResources"),
    (config(FIT, ignoredResources=["a b"]), "ignoredResources[0]"),
    (config(FIT, ignoredResourceGroups=["a/b"]), "ignoredResourceGroups[0]"),
    (strategy(type="Nope", resources=[CPU]), "scoringStrategy.type"),
    (strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]), "resources[0].weight"),
    (strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": -1}]), "resources[0].weight"),
    (strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": "x"}]), "weight"),
    (strategy(type="RequestedToCapacityRatio", resources=[CPU]), "requestedToCapacityRatio"),
    (ratio([]), "shape"),
    (ratio([{"utilization": -1, "score": 0}]), "shape[0].utilization"),
    (ratio([{"utilization": 101, "score": 0}]), "shape[0].utilization"),
    (ratio([{"utilization": 0, "score": 11}]), "shape[0].score"),
    (ratio([{"utilization": 0, "score": -1}]), "shape[0].score"),
    (ratio(list(reversed(SHAPE))), "shape[1].utilization"),
    (config(BALANCED, resources=[{"name": "cpu", "weight": 2}]), "resources[0].weight"),
    (config(BALANCED, resources=[CPU, CPU]), "resources[1]"),
    (config(BALANCED, x=1), "args"),
    (config(AFFINITY, hardPodAffinityWeight=101), "args.hardPodAffinityWeight"),
    (config(AFFINITY, hardPodAffinityWeight=-1), "args.hardPodAffinityWeight"),
    (config(AFFINITY, hardPodAffinityWeight="x"), "hardPodAffinityWeight"),
    (config(AFFINITY, ignorePreferredTermsOfExistingPods="x"), "ignorePreferredTermsOfExistingPods"),
    (config(PREEMPTION, minCandidateNodesPercentage=101), "args.minCandidateNodesPercentage"),
    (config(PREEMPTION, minCandidateNodesPercentage=-1), "args.minCandidateNodesPercentage"),
    (config(PREEMPTION, minCandidateNodesAbsolute=-1), "args.minCandidateNodesAbsolute"),
    (config(PREEMPTION, x=1), "args"),
    (config(VOLUMES, bindTimeoutSeconds=-1), "args.bindTimeoutSeconds"),
    (config(VOLUMES, bindTimeoutSeconds="x"), "bindTimeoutSeconds"),
    (constraints(maxSkew=0), "defaultConstraints[0].maxSkew"),
    (constraints(topologyKey=""), "defaultConstraints[0].topologyKey"),
    (constraints(topologyKey="a b"), "defaultConstraints[0].topologyKey"),
    (constraints(whenUnsatisfiable="Nope"), "defaultConstraints[0].whenUnsatisfiable"),
    (constraints(labelSelector={"matchLabels": {"a": "b"}}), "defaultConstraints[0].labelSelector"),
    (config(SPREAD, defaultingType="Nope"), "args.defaultingType"),
    ({"featureGates": {"Nonsense": True}}, "Nonsense"),
    ({"plugins": [{"name": "absent"}]}, "SchedulerPlugin absent"),
    (
        {
            "extenders": [
                {"urlPrefix": "http://x", "tlsConfig": {"certFile": "/nowhere", "keyFile": "/nowhere"}}
            ]
        },
        "extenders: open /nowhere",
    ),
    (
        {
            "extenders": [
                {"urlPrefix": "http://x", "managedResources": [{"name": "example.com/a"}]},
                {"urlPrefix": "http://y", "managedResources": [{"name": "example.com/a"}]},
            ]
        },
        "extenders[1].managedResources[0].name",
    ),
    (
        {"extenders": [{"urlPrefix": "http://x", "managedResources": [{"name": "a b"}]}]},
        "managedResources[0].name",
    ),
]
