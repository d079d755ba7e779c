"""Where the plugins of a scheduler are changed, so that a change reaches all replicas and is not lost.

Called by: plugin_admin.py, before each change, and after it for how long it holds.
"""

from typing import Protocol

KEPT_BY = "BERTH_SCHEDULER"
"""The variable by which an operator says which Scheduler a process is of: NAMESPACE/NAME."""


class Leads(Protocol):
    """Who schedules: leadership.Leadership."""

    @property
    def leads(self) -> bool:
        """Whether this process does."""

    @property
    def leader(self) -> str:
        """Who does."""


def where_to_change(kept_by: str, leadership: Leads) -> str:
    """Say where plugins are to be changed, if not in this process."""
    if kept_by:
        namespace = kept_by.partition("/")[0]
        return (
            f"Scheduler {kept_by} says which plugins this process has: repeat the command with "
            f"--namespace {namespace}, and the change reaches every replica and lasts"
        )
    if not leadership.leads:
        leader = leadership.leader or "none yet"
        return f"this replica stands by, and a change of it would be lost: ask the leader ({leader})"
    return ""


def how_long(*, elects: bool, plugins_file: str) -> str:
    """Say how long a change of this process holds, and what to edit so that it stays."""
    if elects:
        holds = "while this replica leads, and the next leader goes by its own list"
        edited, started = " in every replica", "every replica"
    else:
        holds, edited, started = "until this scheduler ends", "", "it"
    if plugins_file:
        return f"this holds {holds}; to keep it, edit {plugins_file}{edited}"
    return f"this holds {holds}; to keep it, start {started} with a PluginList that says so (--plugins FILE)"
