"""What our own pod shows of its plugins: which are ready, and took their arguments, and why others are not.

Called by: plugin_upkeep.py, which has it written (own_pod_conditions.py).
"""

from collections.abc import Iterator

from berth.config.out_of_tree.sidecars import arguments_digest
from berth.out_of_tree.connections.conditions import ConditionType
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.scheduler.writing.own_pod_conditions import Json

TYPE_PREFIX = "plugin.berth.dev/"
ARGUMENTS_PREFIX = f"arguments.{TYPE_PREFIX}"


def plugin_conditions(attaching: Attaching) -> Iterator[Json]:
    """Give the conditions of all plugins."""
    for name in dict.fromkeys(each["name"] for each in attaching.list()):
        yield from _conditions(attaching, name)


def _conditions(attaching: Attaching, name: str) -> Iterator[Json]:
    """Whether the plugin is ready, and whether it took its arguments: then with their digest.

    One that is away took those of an earlier entry, if any: nothing is said of the present ones.
    """
    by_type = {each["type"]: each for each in attaching.describe(name)["conditions"]}
    ready, arguments = by_type[ConditionType.READY], by_type.get(ConditionType.ARGUMENTS_ACCEPTED)
    yield {**ready, "type": f"{TYPE_PREFIX}{name}"}
    if arguments is None:
        return
    if arguments["status"] != "True":
        yield {**arguments, "type": f"{ARGUMENTS_PREFIX}{name}"}
    elif ready["status"] == "True":
        digest = arguments_digest(attaching.entry_arguments(name))
        yield {**arguments, "type": f"{ARGUMENTS_PREFIX}{name}", "message": digest}
