"""`berth queue`: who is tried next, who backs off, and what the others wait for."""

import click

from berth.aggregated_api.kinds import QUEUE
from berth.aggregated_api.text_pages import queue_page
from berth.cli.asking.reaching import Explanations, asks_for_explanations
from berth.cli.explained import overview_output, show


@click.command()
@click.argument("profile", required=False)
@asks_for_explanations
@overview_output
def queue(profile: str | None, *, explanations: Explanations, output: str) -> None:
    """Show the queue in which the profile's pods wait: order, waits and counts.

    Without PROFILE it is that of default-scheduler, or else of the only profile.
    """
    show(explanations.of_profile(QUEUE, profile), output, queue_page)
