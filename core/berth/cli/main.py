"""The `berth` command: one group, a module for each verb."""

import click

from berth.cli.config import config
from berth.cli.demo import demo
from berth.cli.explain import explain
from berth.cli.operator import operator
from berth.cli.plugin import plugin
from berth.cli.sandbox import sandbox
from berth.cli.scheduler import scheduler


@click.group()
def main() -> None:
    """Berth schedules Kubernetes pods, and is extended without being recompiled."""


main.add_command(config)
main.add_command(demo)
main.add_command(explain)
main.add_command(operator)
main.add_command(plugin)
main.add_command(sandbox)
main.add_command(scheduler)
