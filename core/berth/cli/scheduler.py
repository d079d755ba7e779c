"""`berth scheduler`: run a scheduler with kube-scheduler's own command line."""

from pathlib import Path

import click

from berth.cli.failing import fail

OWN_FLAGS = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=OWN_FLAGS, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def scheduler(arguments: tuple[str, ...]) -> None:
    """Run a scheduler; takes kube-scheduler's flags (--config, --kubeconfig, --leader-elect, ...)."""
    # Imported here so that the other verbs start quickly.
    from berth.client.errors import ConfigurationError  # noqa: PLC0415 (see above)
    from berth.config.command_line import parse_flags, usage  # noqa: PLC0415 (see above)
    from berth.config.dump import to_yaml  # noqa: PLC0415 (see above)
    from berth.config.errors import ConfigError  # noqa: PLC0415 (see above)
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (see above)
    from berth.scheduler.errors import StartError  # noqa: PLC0415 (see above)
    from berth.scheduler.event_loop import run  # noqa: PLC0415 (see above)
    from berth.scheduler.start import load_files, start  # noqa: PLC0415 (see above)
    from berth.telemetry.errors import TelemetryError  # noqa: PLC0415 (see above)

    try:
        options = parse_flags(arguments)
        if options.wants_help:
            click.echo(usage())
            return
        for warning in options.warnings:
            click.echo(f"Warning: {warning}", err=True)
        loaded, sidecars = load_files(options)
        if options.write_config_to:
            Path(options.write_config_to).write_text(to_yaml(loaded.configuration), encoding="utf-8")
            return
        run(start(options, loaded, sidecars))
    except (ConfigError, ConfigurationError, EventRegistrationError, StartError, TelemetryError) as error:
        fail(error)
