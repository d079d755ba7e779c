"""`berth live`: a scheduler's live page in this machine's browser, with its user's credentials."""

import asyncio

import click

from berth.cli.asking.access import ServerAccess, asks_a_scheduler
from berth.cli.asking.secure_port import LOCAL
from berth.cli.failing import fail


@click.command()
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of loopback to serve the page on; 0 takes a free one.",
)
@asks_a_scheduler
def live(*, access: ServerAccess, port: int) -> None:
    """Serve a scheduler's live page on loopback until interrupted; prints the address to open.

    The scheduler has to run with --live-page. It is asked at its secure port, --server or that of this
    machine's scheduler, with --token or the kubeconfig's bearer token.
    """
    # Imported here so that the other verbs start quickly.
    from berth.live_page.passing_on import serve  # noqa: PLC0415 (see above)

    server = access.server
    try:
        asyncio.run(serve(server.url or LOCAL, server.tls(), access.token, port, click.echo))
    except OSError as error:
        fail(f"--port {port}: {error.strerror or error}: choose another one, or 0")
