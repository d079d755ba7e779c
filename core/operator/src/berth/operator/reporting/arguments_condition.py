"""Whether plugins took their arguments, as schedulers report it on their pods.

Arguments that every scheduler's plugin took are kept in the SchedulerPlugin's status: where it refuses later
ones, a pod of the scheduler that starts then has these to go on with.
"""

from collections.abc import Iterable, Iterator, Sequence

from berth.config.out_of_tree.sidecars import arguments_digest
from berth.operator.kinds import Json
from berth.operator.reporting.conditions import ARGUMENTS_ACCEPTED, PLUGIN, StatusCondition, pod_conditions

ARGUMENTS = f"arguments.{PLUGIN}"
"""How the types of conditions begin by which a scheduler reports what its plugins make of their arguments."""


def arguments_accepted(plugins: Iterable[str], pods: Sequence[Json]) -> list[StatusCondition]:
    """Give the condition about these plugins, none where there are none or where none has said anything."""
    names = list(plugins)
    reports = [(name, report) for name in names for report in _reports(name, pods)]
    if not reports:
        return []
    wrong = dict.fromkeys(
        f"{name}: {report.get('message', '')}" for name, report in reports if report["status"] != "True"
    )
    if wrong:
        return [StatusCondition(ARGUMENTS_ACCEPTED, False, "Refused", "; ".join(wrong))]
    return [StatusCondition(ARGUMENTS_ACCEPTED, True, "Accepted", "")]


def accepted(plugin: Json, pods: Sequence[Json]) -> Json | None:
    """Give the arguments that the plugin took last; None where none are known."""
    arguments = plugin["spec"].get("arguments")
    digest = arguments_digest(arguments)
    reports = list(_reports(plugin["metadata"]["name"], pods))
    if reports and all((one["status"], one.get("message")) == ("True", digest) for one in reports):
        return {} if arguments is None else {"arguments": arguments}
    before: Json | None = (plugin.get("status") or {}).get("accepted")
    return before


def _reports(plugin: str, pods: Iterable[Json]) -> Iterator[Json]:
    return (one for pod in pods for one in pod_conditions(pod) if one["type"] == f"{ARGUMENTS}{plugin}")
