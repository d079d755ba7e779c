"""`berth live`: a scheduler's live page in this machine's browser, with its user's credentials."""

import asyncio

import click

from berth.cli.asking import LOCAL
from berth.cli.failing import fail
from berth.cli.reaching import Explanations, asks_for_explanations


@click.command()
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of loopback to serve the page on; 0 takes a free one.",
)
@asks_for_explanations
def live(*, explanations: Explanations, port: int) -> None:
    """Serve a scheduler's live page on loopback until interrupted; prints the address to open.

    The scheduler has to run with --live-page. It is asked at its secure port, --server, with --token or the
    kubeconfig's bearer token.
    """
    # Imported here so that the other verbs start quickly.
    from berth.live_page.passing_on import serve  # noqa: PLC0415 (see above)

    server = explanations.server

    async def token() -> str:
        return await explanations.token()

    try:
        asyncio.run(serve(server.url or LOCAL, server.tls(), token, port, click.echo))
    except OSError as error:
        fail(f"--port {port}: {error.strerror or error}: choose another one, or 0")
