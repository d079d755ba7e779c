"""Groups of commands, each imported when it is used, wherever its distribution is installed.

A scheduler's start pays for no other command. What another distribution adds to `berth` stands in its modules
`berth.commands.NAME`; their names are known here, so that an absent one is explained.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from berth.cli.distributions import DISTRIBUTIONS, fail_absent

COMMANDS = {
    "berth.commands.demo": "berth.demo",
    "berth.commands.deschedule": "berth.descheduling",
    "berth.commands.operator": "berth.operator",
    "berth.commands.plugin_init": "berth.conformance",
    "berth.commands.plugin_recording": "berth.replay",
    "berth.commands.plugin_verify": "berth.conformance",
    "berth.commands.record": "berth.observer",
    "berth.commands.sandbox": "berth.sandbox",
    "berth.commands.simulate": "berth.simulation",
    "berth.commands.snapshot": "berth.simulation",
    "berth.commands.to_crd": "berth.operator",
}
"""Modules of other distributions that add a command, each with the package that it is a command of."""


class Verbs(click.Group):
    """A group of its own commands and of others by name, each `module:attribute`."""

    def __init__(self, *args: Any, elsewhere: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.elsewhere = elsewhere

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, installed or not."""
        return sorted({*super().list_commands(ctx), *self.elsewhere})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, None where there is none of that name; an absent one fails when it is run."""
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.elsewhere[cmd_name].partition(":")
        try:
            command: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name not in (module, "berth.commands"):
                raise
            return _absent(cmd_name, COMMANDS[module])
        return command


def _absent(name: str, package: str) -> click.Command:
    return click.Command(
        name,
        callback=lambda: fail_absent(package),
        short_help=f"Not installed: it is in {DISTRIBUTIONS[package]}.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
