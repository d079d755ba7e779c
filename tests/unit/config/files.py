"""Builders for configuration files."""

import json

import yaml

from berth.config import load

API_VERSION = "kubescheduler.config.k8s.io/v1"
HEADER = f"apiVersion: {API_VERSION}\nkind: KubeSchedulerConfiguration\n"
BUILDING = "initializing profiles: creating profile for scheduler name default-scheduler: "


def file(body=""):
    """A file with the two header lines and this YAML body, or this mapping."""
    return HEADER + (body if isinstance(body, str) else yaml.safe_dump(body, sort_keys=False))


def json_file(**fields):
    """A JSON file."""
    return json.dumps({"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", **fields})


def profile_file(**profile):
    """A file with one profile."""
    return file({"profiles": [profile]})


def plugins_file(**sets):
    """A file with one profile that has these plugin sets."""
    return profile_file(plugins=sets)


def args_file(plugin, args):
    """A file with one profile that has these arguments for a plugin."""
    return profile_file(pluginConfig=[{"name": plugin, "args": args}])


def names(*plugins):
    """Entries of a plugin set: "A" without a weight, ("A", 3) with one."""
    return [
        {"name": plugin} if isinstance(plugin, str) else {"name": plugin[0], "weight": plugin[1]}
        for plugin in plugins
    ]


def points(text, **options):
    """The only profile's points, as {"score": ["A=3", "B"]}."""
    (profile,) = load(text, **options).profiles
    return shown(profile)


def shown(profile):
    """A profile's points, as {"score": ["A=3", "B"]}."""
    return {
        point.value: [f"{name}={weight}" if weight else name for name, weight in plugins]
        for point, plugins in profile.points.items()
    }


DEFAULTS = points(None)


def changed(text, **options):
    """The points at which a file's only profile differs from the default one."""
    found = points(text, **options)
    return {point: plugins for point, plugins in found.items() if plugins != DEFAULTS[point]}
