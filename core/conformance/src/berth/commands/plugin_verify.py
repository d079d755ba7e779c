"""`berth plugin verify`: the conformance kit on a plugin that is running."""

from pathlib import Path
from typing import Any

import click

_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("address", required=False)
@click.option("--args", "arguments", default="", help="The plugin's arguments, as a JSON object.")
@click.option("--profile", default="default-scheduler", show_default=True, help="The profile to configure.")
@click.option("--pods", type=_file, help="Pods (YAML) that the plugin has something to say about.")
@click.option("--nodes", type=_file, help="Nodes (YAML) likewise.")
@click.option("--objects", type=_file, help="Objects (YAML) of the kinds that the plugin watches.")
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Only these checks, such as 'sync/*'; repeatable."
)
@click.option("--skip", multiple=True, metavar="PATTERN", help="Not these checks; repeatable.")
@click.option("--list", "listing", is_flag=True, help="List the checks and do nothing.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--timeout", default=5.0, show_default=True, help="How long one answer may take, in seconds.")
@click.option("--seed", default=0, show_default=True, help="What random steps are drawn from.")
@click.option("--many-nodes", default=5000, show_default=True, help="The size of the large cluster.")
@click.option(
    "--trace-file", type=click.Path(path_type=Path), help="Where the plugin writes spans (BERTH_TRACE_FILE)."
)
@click.option("--in-use", is_flag=True, help="Go on with a plugin that reports to be configured and synced.")
@click.option("--pid", type=int, help="The plugin's process, to be ended at last.")
@click.option("--ca", type=_file, help="Over TCP: whose certificate the plugin has to show.")
@click.option("--cert", type=_file, help="Over TCP: the certificate that is shown to it.")
@click.option("--key", type=_file, help="Over TCP: that certificate's key.")
def verify(
    address: str | None, *, listing: bool, only: tuple[str, ...], skip: tuple[str, ...], **given: Any
) -> None:
    """Check that the plugin at ADDRESS (unix:/path/to.sock or host:port) keeps the protocol.

    Its arguments are configured for a profile, and a small synthetic cluster is shown to it; no scheduler and
    no API server takes part. Samples are made of what the plugin announces; what none of them made it do is
    listed as not tried. A plugin that a scheduler uses is not verified: its arguments and its state would be
    replaced.

    Exit code 0: all checks passed or were skipped; 1: some failed; 2: they could not be run.
    """
    # Imported here so that the other verbs start quickly.
    from berth.commands.verification import verified  # noqa: PLC0415 (see above)

    verified(address, listing=listing, only=only, skip=skip, **given)
