"""Which scheduler is simulated, and on which cluster: options, and what they say."""

import sys
from typing import TYPE_CHECKING

import click

from berth.cli.failing import EXIT_BAD_INPUT, fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.simulation.plugins.plugin_settings import SchedulerSettings
    from berth.simulation.plugins.scheduler_objects import RenderedScheduler

CONFIG = click.option(
    "--config",
    "config_file",
    default="",
    metavar="FILE",
    help="The scheduler's KubeSchedulerConfiguration, or its Scheduler and SchedulerPlugin objects; by "
    "default kube-scheduler's own defaults.",
)
FEATURE_GATES = click.option(
    "--feature-gates", default="", metavar="A=true,B=false", help="As for the scheduler."
)
RELEASE = click.option(
    "--release",
    default="",
    metavar="1.37",
    help="The Kubernetes release to decide as; by default the oldest that takes the feature gates.",
)


def read_scheduler(
    config_file: str,
    feature_gates: str,
    plugins_file: str = "",
    *,
    ways: "Sequence[str]" = (),
    objects: "RenderedScheduler | None" = None,
    shared: bool = False,
    release: str = "",
) -> "SchedulerSettings":
    """What `berth scheduler` would start with; the process ends where it would not start."""
    from berth.config.complaints import complaint_lines  # noqa: PLC0415 (quick start)
    from berth.config.errors import ConfigError  # noqa: PLC0415 (quick start)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.plugins.plugin_settings import read_scheduler as read  # noqa: PLC0415 (quick start)

    try:
        return read(
            config_file,
            feature_gates,
            plugins_file,
            ways=ways,
            objects=objects,
            shared=shared,
            release=release,
        )
    except SimulationError as error:
        fail(error)
    except ConfigError as error:
        for line in complaint_lines(error, config_file):
            click.echo(f"Error: {line}", err=True)
        sys.exit(EXIT_BAD_INPUT)
