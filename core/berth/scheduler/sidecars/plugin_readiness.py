"""What our own pod shows of its plugins: which are ready, and took their arguments, and why others are not.

Called by: plugin_upkeep.py, which has it written (own_pod_conditions.py).
"""

from collections.abc import Iterator

from berth.config.out_of_tree.sidecars import arguments_digest
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.conditions import Kind
from berth.scheduler.writing.own_pod_conditions import Json

TYPE_PREFIX = "plugin.berth.dev/"
ARGUMENTS_PREFIX = f"arguments.{TYPE_PREFIX}"


def plugin_conditions(attaching: Attaching) -> Iterator[Json]:
    """Give the conditions of all plugins."""
    for name in dict.fromkeys(each["name"] for each in attaching.list()):
        yield from _conditions(attaching, name)


def _conditions(attaching: Attaching, name: str) -> Iterator[Json]:
    """Whether the plugin is ready, and whether it took its arguments: then with their digest."""
    by_type = {each["type"]: each for each in attaching.describe(name)["conditions"]}
    yield {**by_type[Kind.READY], "type": f"{TYPE_PREFIX}{name}"}
    if (arguments := by_type.get(Kind.ARGUMENTS_ACCEPTED)) is not None:
        digest = arguments_digest(attaching.entry_arguments(name))
        message = digest if arguments["status"] == "True" else arguments["message"]
        yield {**arguments, "type": f"{ARGUMENTS_PREFIX}{name}", "message": message}
