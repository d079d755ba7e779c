"""`berth scheduler`: run a scheduler with kube-scheduler's own command line."""

import sys
from pathlib import Path

import click

from berth.cli.failing import EXIT_BAD_INPUT, EXIT_FAILED, fail

OWN_FLAGS = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=OWN_FLAGS, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def scheduler(arguments: tuple[str, ...]) -> None:
    """Run a scheduler; takes kube-scheduler's flags (--config, --kubeconfig, --leader-elect, ...)."""
    # Imported here so that the other verbs start quickly.
    from berth.scheduler.loop.event_loop import collect_seldom, run  # noqa: PLC0415 (see above)

    collect_seldom()
    from berth.client.errors import ConfigurationError  # noqa: PLC0415 (see above)
    from berth.config.command_line import parse_flags, read_settings, usage  # noqa: PLC0415 (see above)
    from berth.config.complaints import complaint_lines  # noqa: PLC0415 (see above)
    from berth.config.dump import to_yaml  # noqa: PLC0415 (see above)
    from berth.config.errors import ConfigError  # noqa: PLC0415 (see above)
    from berth.config.flags.reported_version import version_text  # noqa: PLC0415 (see above)
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (see above)
    from berth.scheduler.errors import FinishedError  # noqa: PLC0415 (see above)
    from berth.scheduler.start import start  # noqa: PLC0415 (see above)
    from berth.serving.errors import StartError  # noqa: PLC0415 (see above)
    from berth.telemetry.errors import TelemetryError  # noqa: PLC0415 (see above)

    options = None
    try:
        options = parse_flags(arguments)
        if options.wants_help:
            click.echo(usage())
            return
        if text := version_text(options.version):
            click.echo(text)
            return
        for warning in options.warnings:
            click.echo(f"Warning: {warning}", err=True)
        settings = read_settings(options)
        if options.write_config_to:
            text = to_yaml(settings.loaded.configuration)
            Path(options.write_config_to).write_text(text, encoding="utf-8")
            return
        run(start(options, settings))
    except ConfigError as error:
        for line in complaint_lines(error, options.config_file if options else ""):
            click.echo(f"Error: {line}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except FinishedError as end:
        click.echo(f"Error: {end}", err=True)
        sys.exit(EXIT_FAILED)
    except (ConfigurationError, EventRegistrationError, StartError, TelemetryError) as error:
        fail(error)
