"""What `berth plugin list` and `describe` print: of one process, and of the resources of a namespace."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.pluralize import pluralize

Json = dict[str, Any]

_OF_PROCESS = ("name", "version", "state", "circuit", "shadow", "profiles", "address")
_OF_RESOURCES = ("name", "ready", "shadow", "profiles", "schedulers", "runs")
_ONE_PROCESS = "versions, calls and last failures: of one process, by --server (docs/explain-access.md)"


def listed_lines(plugins: Iterable[Json]) -> list[str]:
    """A line for each plugin of a scheduler's process, below a head."""
    return _table(_OF_PROCESS, ([_cell(each[column]) for column in _OF_PROCESS] for each in plugins))


def listed_resource_lines(plugins: Iterable[Json]) -> list[str]:
    """A line for each SchedulerPlugin, below a head."""
    return _table(_OF_RESOURCES, map(_resource_row, plugins))


def _resource_row(plugin: Json) -> list[str]:
    spec, status = plugin["spec"], plugin.get("status") or {}
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    is_ready = "unknown" if ready is None else "yes" if ready["status"] == "True" else ready["reason"]
    return [
        plugin["metadata"]["name"],
        is_ready,
        _cell(spec.get("shadow", False)),
        _cell(spec.get("profiles") or []) or "-",
        _cell(status.get("schedulers") or []) or "-",
        spec.get("image") or spec.get("address") or "-",
    ]


def described_resource_lines(plugin: Json, schedulers: Iterable[Json]) -> list[str]:
    """A SchedulerPlugin, and what each Scheduler that runs it reports of it."""
    spec, metadata = plugin["spec"], plugin["metadata"]
    conditions = (plugin.get("status") or {}).get("conditions") or ()
    return [
        f"Name:        {metadata['namespace']}/{metadata['name']}",
        *(
            f"{field.capitalize() + ':':<13}{spec[field]}"
            for field in ("image", "address")
            if spec.get(field)
        ),
        f"Profiles:    {', '.join(spec.get('profiles') or ()) or 'those that name it themselves'}",
        f"Shadow:      {_cell(spec.get('shadow', False))}",
        f"Arguments:   {json.dumps(spec['arguments']) if 'arguments' in spec else 'none'}",
        f"Failures:    {_policies(spec.get('failurePolicy') or {}) or 'as its extension points have it'}",
        "Schedulers:",
        *(f"  {_reported(one, metadata['name'])}" for one in schedulers),
        "Conditions:",
        *map(_condition, conditions),
        f"({_ONE_PROCESS})",
    ]


def _policies(policies: Mapping[str, str]) -> str:
    return ", ".join(f"{point} {policy}" for point, policy in policies.items())


def _reported(scheduler: Json, name: str) -> str:
    reported = (scheduler.get("status") or {}).get("plugins") or ()
    found = next((one for one in reported if one["name"] == name), {"message": "nothing reported yet"})
    what = "ready" if found.get("ready") else found.get("message") or "not ready"
    return f"{scheduler['metadata']['name']}: {what}"


def _condition(one: Json) -> str:
    said = f": {one['message']}" if one.get("message") else ""
    return f"  {one['type']}: {one['status']} since {one['lastTransitionTime']}, {one['reason']}{said}"


def _table(head: Iterable[str], rows: Iterable[list[str]]) -> list[str]:
    every = [list(head), *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in every
    ]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, list) else str(value)


def described_lines(answer: Json) -> list[str]:
    """Everything that a scheduler's process knows of a plugin."""
    held = answer["clusterState"]
    lines = [
        f"Name:              {answer['name']}",
        f"Version:           {answer['version']}",
        f"Address:           {answer['address']}",
        f"Profiles:          {', '.join(answer['profiles'])}",
        f"Shadow:            {_cell(answer['shadow'])}",
        f"Extension points:  {', '.join(answer['extensionPoints'])}",
        f"State:             {answer['state']}",
        f"Holds:             generation {held['acknowledged']} of {held['generation']}",
        f"Starts:            {held['starts']}",
        f"Attempts now:      {answer['attempts']}",
        f"Recorded now:      {'yes' if answer.get('recording') else 'no'}",
        "Failure policy:",
        *(f"  {point}: {policy}" for point, policy in answer["failurePolicy"].items()),
        "Last failures:",
        *(f"  {_failure(each)}" for each in answer["lastFailures"]),
        "Arguments:",
        *(f"  {profile}: {json.dumps(values)}" for profile, values in answer["arguments"].items()),
        "Events:",
        *(f"  {event}" for event in answer["events"]),
        *(line for profile, known in answer["comparison"].items() for line in _comparison(profile, known)),
        "Conditions:",
    ]
    lines += map(_condition, answer["conditions"])
    for old in answer["draining"]:
        recorded = ", recorded now" if old["recording"] else ""
        ends = f"{old['version']} at {old['address']}, {old['attempts']} attempts{recorded}"
        lines.append(f"Draining:          {ends}")
    return lines


def _failure(failure: Json) -> str:
    """A failure, how often it came, and what became of the latest pod."""
    outcome = "ignored" if failure["policy"] == FailurePolicy.IGNORE else "failed the pod"
    times = pluralize(failure["count"], "time")
    about = f"{outcome} {times}, last for {failure['pod']} at {failure['lastTime']}"
    return f"{failure['point']}: {failure['error']} ({about})"


def _comparison(profile: str, known: Json) -> list[str]:
    """How a plugin in shadow compares with what was decided."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in known["attempts"].items()) or "none yet"
    lines = [
        f"In the shadow of {profile}:",
        f"  attempts: {counts}",
        f"  nodes it would have turned down: {known['nodesRejected']}",
    ]
    return lines + [
        f"  {each['pod']}{' on ' if each['node'] else ''}{each['node']}: {each['outcome']}"
        + (f": {each['detail']}" if each["detail"] else "")
        for each in known["latest"]
    ]
