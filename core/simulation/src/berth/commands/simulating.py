"""What the verbs of `berth simulate` have in common: options, and how a result is printed."""

from typing import TYPE_CHECKING, Any

import click

from berth.commands.simulated_scheduler import CONFIG, FEATURE_GATES

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
)
QUEUES_EVERY = click.option(
    "--queues-every",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="So often in virtual time it is read what each queue has, as the plugin queues shows it: use, fair "
    "share, borrowing, waits and evictions by queue.",
)
_SIMULATED = (
    click.option(
        "--plugins",
        "plugins_file",
        default="",
        metavar="FILE",
        help="A PluginList, as for the scheduler; an entry may have a `command` that starts it. By default "
        "the list behind the configuration. Timers of plugins that use the SDK's clock run in virtual time; "
        "where those of others decide, there is no verdict.",
    ),
    click.option(
        "--plugin",
        "ways",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Start that plugin by this command, or reach it at NAME=ADDRESS, whatever its entry or "
        "SchedulerPlugin says; one that has neither is added to the profiles that enable it. Repeatable.",
    ),
    FEATURE_GATES,
    click.option("--seed", default=0, show_default=True, help="Of the choice between equal nodes."),
    click.option(
        "--what-if",
        "what_if",
        multiple=True,
        metavar="CHANGE",
        help="Change the cluster first, such as `add-node n0 x10` or `drain zone=a`; or a file with a "
        "change a line. `after SECONDS` before it makes it in the midst. Repeatable.",
    ),
    OUTPUT,
)


def configured(command: Any) -> Any:
    """Give a command the options that say which scheduler is simulated, and how its outcome is printed."""
    return CONFIG(configured_but_for_file(command))


def configured_but_for_file(command: Any) -> Any:
    """The same options for a command that takes configurations as arguments."""
    for option in reversed(_SIMULATED):
        command = option(command)
    return command


def show(result: Any, output: str, lines: "Iterable[str]") -> None:
    """Print a result: as text, or whole as JSON or YAML."""
    import msgspec  # noqa: PLC0415 (quick start)

    from berth.config.dump import yaml_text  # noqa: PLC0415 (quick start)

    if output == "text":
        for line in lines:
            click.echo(line)
    elif output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(result)))
    else:
        click.echo(yaml_text(msgspec.to_builtins(result)), nl=False)
