"""The `berth` command: one group, a module for each verb.

Verbs are imported when they are used: a scheduler's start does not pay for the conformance kit.
"""

from importlib import import_module

import click

VERBS = ("config", "demo", "explain", "operator", "plugin", "sandbox", "scheduler")
"""Each is a command of that name in the module `berth.cli.<verb>`."""


class Verbs(click.Group):
    """Commands by name, each from its own module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, None where there is none of that name."""
        del ctx
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"berth.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=Verbs)
def main() -> None:
    """Berth schedules Kubernetes pods, and is extended without being recompiled."""
