"""`berth queue`: who is tried next, who backs off, and what the others wait for."""

import click

from berth.cli.asking import Server, asks_a_server
from berth.cli.explained import overview_output, queue_page, show


@click.command()
@asks_a_server
@overview_output
def queue(*, server: Server, output: str) -> None:
    """Show the scheduling queue: order, waits and counts."""
    show(server.ask("/explain/queue"), output, queue_page)
