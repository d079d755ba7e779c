"""Configurations for scenarios: a document for the real loader that names scripted plugins."""

import json

from berth.config.catalogue import IN_TREE, ExtensionPoint
from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.config.releases.release import DEFAULT, effective
from berth.framework import interface
from berth.plugins.registry import IN_TREE as IN_TREE_FACTORIES

PROFILE = "default-scheduler"
INTERFACES = {
    point: cls for point in ExtensionPoint if (cls := getattr(interface, point.interface, None)) is not None
}


def configured(profiles, extenders, settings, gates, release=DEFAULT):
    """What the scheduler starts with, and the factory of each plugin.

    A profile is a list of plugins, None for the default one. A plugin is an instance, the name of an in-tree
    one, or either with its weight. PrioritySort and DefaultBinder join unless others do their work.
    """
    instances = {}
    documents = [_profile(name, plugins, instances) for name, plugins in profiles.items()]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": documents,
        "extenders": [_extender(extender) for extender in extenders],
        **settings,
    }
    loaded = load(
        json.dumps(document),
        gates=FeatureGates(dict(gates), effective(release)),
        out_of_tree={name: points_of(plugin) for name, plugin in instances.items()},
    )
    scripted = {name: _factory(plugin) for name, plugin in instances.items()}
    return loaded, {**IN_TREE_FACTORIES, **scripted}


def points_of(plugin):
    """The extension points that a plugin serves."""
    return frozenset(point for point, cls in INTERFACES.items() if isinstance(plugin, cls))


def _profile(scheduler_name, plugins, instances):
    if plugins is None:
        return {"schedulerName": scheduler_name}
    weighted = [plugin if isinstance(plugin, tuple) else (plugin, 0) for plugin in plugins]
    names = {(p if isinstance(p, str) else p.name): weight for p, weight in weighted}
    instances.update({p.name: p for p, _ in weighted if not isinstance(p, str)})
    points = {point for name in names for point in _points(name, instances)}
    if ExtensionPoint.QUEUE_SORT not in points:
        names["PrioritySort"] = 0
    if ExtensionPoint.BIND not in points:
        names["DefaultBinder"] = 0
    enabled = [{"name": name, "weight": weight} for name, weight in names.items()]
    multi_point = {"enabled": enabled, "disabled": [{"name": "*"}]}
    return {"schedulerName": scheduler_name, "plugins": {"multiPoint": multi_point}}


def _points(name, instances):
    return points_of(instances[name]) if name in instances else IN_TREE[name]


def _factory(plugin):
    def made(_args, handle):
        if hasattr(plugin, "connect"):
            plugin.connect(handle)
        return plugin

    return made


def _extender(extender):
    verbs = {
        "filterVerb": extender.filters,
        "prioritizeVerb": extender.prioritizes,
        "preemptVerb": extender.preempts,
        "bindVerb": extender.binds,
    }
    return {
        "urlPrefix": f"http://127.0.0.1:1/{extender.name}",
        "weight": extender.weight,
        "ignorable": extender.ignorable,
        **{verb: verb for verb, able in verbs.items() if able},
    }
