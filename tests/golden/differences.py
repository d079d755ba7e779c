"""Where an answer differs from what was expected.

While plugins are missing, what only they can answer is left out, and so is what all plugins give together
wherever the missing ones have a say in it; such a vector can agree, but it does not pass.
"""

from collections.abc import Iterator

BY_PLUGIN = ("preFilter", "filter", "preEnqueue")
BY_NODES_LEFT = ("scores", "total", "best", "nodeStatus", "feasible", "schedule", "preFilterOverall")
ONE_PLUGIN_ONLY = ("preempt", "events", "result", "rejectedBy", "requeued")
ABSENT = "(absent)"


def without(expected, missing):
    """The part of the expected answer that does not depend on the missing plugins."""
    if not missing:
        return expected
    part = {key: value for key, value in expected.items() if key not in ONE_PLUGIN_ONLY}
    if _decided_by(missing, expected):
        part = {key: value for key, value in part.items() if key not in BY_NODES_LEFT}
    for key in BY_PLUGIN:
        if key in part:
            part[key] = {name: value for name, value in part[key].items() if name not in missing}
    if "scores" in part:
        part |= _scores_without(part, missing)
    return part


def _decided_by(missing, expected):
    """Whether a missing plugin turns any node down, alone or with nominated pods in the way."""
    filters, statuses = expected.get("filter", {}), expected.get("nodeStatus", {}).values()
    alone = any(filters.get(plugin, "Skip") not in ("Skip", {}) for plugin in missing)
    return alone or any(status.get("plugin") in missing for status in statuses)


def _scores_without(part, missing):
    """The other plugins' scores, and sums without the missing plugins' share."""
    gone = [part["scores"][name] for name in missing if name in part["scores"]]
    total = {
        node: score - sum(scores["nodes"][node][2] for scores in gone if "nodes" in scores)
        for node, score in part["total"].items()
    }
    highest = max(total.values(), default=0)
    return {
        "scores": {name: scores for name, scores in part["scores"].items() if name not in missing},
        "total": total,
        "best": sorted(node for node, score in total.items() if score == highest),
    }


def differences(expected, found, path="") -> Iterator[str]:
    """Each place where the two differ; keys that were not expected at the top are not looked at."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = expected.keys() if not path else expected.keys() | found.keys()
        for key in sorted(keys):
            here = f"{path}.{key}" if path else key
            yield from differences(expected.get(key, ABSENT), found.get(key, ABSENT), here)
    elif expected != found:
        yield f"{path}: expected {expected}, got {found}"
