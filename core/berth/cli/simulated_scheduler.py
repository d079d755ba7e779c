"""Which scheduler is simulated, and on which cluster: options, and what they say."""

import sys
from typing import TYPE_CHECKING

import click

from berth.cli.failing import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from berth.config.flags.command_line import Settings

CONFIG = click.option(
    "--config",
    "config_file",
    default="",
    metavar="FILE",
    help="The scheduler's KubeSchedulerConfiguration; by default kube-scheduler's own defaults.",
)
FEATURE_GATES = click.option(
    "--feature-gates", default="", metavar="A=true,B=false", help="As for the scheduler."
)
KUBECONFIG = click.option("--kubeconfig", default="", help="The cluster; by default as kubectl finds it.")
CONTEXT = click.option("--context", default="", help="A context of the kubeconfig.")


def read_scheduler(config_file: str, feature_gates: str) -> "Settings":
    """What `berth scheduler` would start with; the process ends where it would not start."""
    from berth.config.complaints import complaint_lines  # noqa: PLC0415 (quick start)
    from berth.config.errors import ConfigError  # noqa: PLC0415 (quick start)
    from berth.config.flags.command_line import parse_flags, read_settings  # noqa: PLC0415 (quick start)

    flags = [f"--config={config_file}"] if config_file else []
    flags += [f"--feature-gates={feature_gates}"] if feature_gates else []
    try:
        return read_settings(parse_flags(flags))
    except ConfigError as error:
        for line in complaint_lines(error, config_file):
            click.echo(f"Error: {line}", err=True)
        sys.exit(EXIT_BAD_INPUT)
