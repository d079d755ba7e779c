"""`berth sandbox up`: run the in-memory control plane as a process."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from berth.sandbox import Options

DEFAULT_KUBECONFIG = Path("run/sandbox.kubeconfig")
_USAGE_ERROR = 2


@click.group()
def sandbox() -> None:
    """Run a Kubernetes API server in memory, on loopback, for development."""


@sandbox.command()
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one."
)
@click.option(
    "--kubeconfig",
    default=DEFAULT_KUBECONFIG,
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the kubeconfig.",
)
@click.option(
    "--load",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Kubernetes YAML or JSON, or a folder of openb CSV files, to create objects from. Repeatable.",
)
@click.option(
    "--data-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep everything in this file, and begin with what it holds.",
)
@click.option("--kubelets/--no-kubelets", default=True, show_default=True, help="Run bound pods.")
@click.option(
    "--authorization-mode",
    type=click.Choice(["AlwaysAllow", "RBAC"]),
    default="AlwaysAllow",
    show_default=True,
    help="RBAC serves TLS, asks for tokens, and allows what the roles in it allow.",
)
@click.option(
    "--run-image",
    "images",
    multiple=True,
    metavar="PATTERN=COMMAND",
    help="Run containers of these images as processes of this machine; needs RBAC. Repeatable.",
)
@click.option(
    "--controllers/--no-controllers",
    default=False,
    show_default=True,
    help="Keep the pods of Deployments, and collect what has lost its owner.",
)
def up(
    port: int,
    kubeconfig: Path,
    sources: tuple[Path, ...],
    authorization_mode: str,
    images: tuple[str, ...],
    **settings: Any,
) -> None:
    """Serve until interrupted; prints one line when ready."""
    # Imported here so that the other verbs start quickly.
    from berth.sandbox import Options, SandboxError  # noqa: PLC0415 (see above)
    from berth.sandbox.containers import Images  # noqa: PLC0415 (see above)
    from berth.sandbox.dataset import DatasetError  # noqa: PLC0415 (see above)

    try:
        options = Options(
            port=port, rbac=authorization_mode == "RBAC", images=Images.parse(images), **settings
        )
        asyncio.run(_serve(options, kubeconfig, sources))
    except (SandboxError, DatasetError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(_USAGE_ERROR)


async def _serve(options: "Options", kubeconfig: Path, sources: tuple[Path, ...]) -> None:
    from berth.sandbox import serve  # noqa: PLC0415 (quick start of the other verbs)
    from berth.sandbox.dataset import open_dataset  # noqa: PLC0415 (quick start of the other verbs)

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await serve(options) as running:
        loaded = sum(running.load(open_dataset(path).load().in_creation_order()) for path in sources)
        running.write_kubeconfig(kubeconfig)
        try_it = f"kubectl --kubeconfig {kubeconfig} get nodes"
        click.echo(f"sandbox ready at {running.url} (loopback only), {loaded} objects loaded; try: {try_it}")
        await stop.wait()
