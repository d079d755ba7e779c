"""The `berth` command: one group, a module for each verb."""

import os
from typing import Any

import click

from berth.cli.distributions import named_where_absent
from berth.cli.ending import ended_by_signals
from berth.cli.printing import printed
from berth.cli.verbs import Verbs

# Nothing here multiplies matrices, for which NumPy starts a thread for each core where it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Every child process runs another program at once. gRPC prepares each fork for a child that goes on using
# gRPC, and while calls are made some of uvloop's children end with SIGSEGV of it. It reads this where it is
# imported.
# Source: github.com/grpc/grpc doc/fork_support.md.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

VERBS = {
    "config": "berth.cli.config:config",
    "demo": "berth.commands.demo:demo",
    "deschedule": "berth.commands.deschedule:deschedule",
    "explain": "berth.cli.explain:explain",
    "live": "berth.cli.live:live",
    "operator": "berth.commands.operator:operator",
    "plugin": "berth.cli.plugins.plugin:plugin",
    "queue": "berth.cli.queue:queue",
    "record": "berth.commands.record:record",
    "sandbox": "berth.commands.sandbox:sandbox",
    "scheduler": "berth.cli.scheduler:scheduler",
    "simulate": "berth.commands.simulate:simulate",
    "snapshot": "berth.commands.snapshot:snapshot",
}


class Berth(Verbs):
    """The group of all verbs."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line; what is printed passes berth.cli.printing."""
        with printed():
            return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; ends the program with what to install where a package is absent."""
        with ended_by_signals(), named_where_absent():
            return super().invoke(ctx)


@click.group(cls=Berth, elsewhere=VERBS)
@click.version_option(package_name="berth-scheduler", prog_name="berth")
def main() -> None:
    """Berth schedules Kubernetes pods, and is extended without being recompiled."""
