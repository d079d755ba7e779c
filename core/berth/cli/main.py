"""The `berth` command: one group, a module for each verb.

Verbs are imported when they are used: a scheduler's start does not pay for the conformance kit.
"""

import os
from importlib import import_module
from typing import Any

import click

from berth.cli.distributions import named_where_absent
from berth.cli.ending import ended_by_signals
from berth.cli.printing import printed

# Nothing here multiplies matrices, for which NumPy starts a thread for each core where it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Every child process runs another program at once. gRPC prepares each fork for a child that goes on using
# gRPC, and while calls are made some of uvloop's children end with SIGSEGV of it. It reads this where it is
# imported.
# Source: github.com/grpc/grpc doc/fork_support.md.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

VERBS = (
    "config",
    "demo",
    "deschedule",
    "explain",
    "live",
    "operator",
    "plugin",
    "queue",
    "record",
    "sandbox",
    "scheduler",
    "simulate",
    "snapshot",
)
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

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line; what is printed passes berth.cli.printing."""
        with printed():
            return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; ends the program with what to install where a package is absent."""
        with ended_by_signals(), named_where_absent():
            return super().invoke(ctx)


@click.group(cls=Verbs)
@click.version_option(package_name="berth-scheduler", prog_name="berth")
def main() -> None:
    """Berth schedules Kubernetes pods, and is extended without being recompiled."""
