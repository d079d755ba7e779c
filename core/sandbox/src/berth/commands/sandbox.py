"""`berth sandbox up`: run the in-memory control plane as a process."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from berth.sandbox import SandboxOptions
    from berth.sandbox.real import RealOptions

DEFAULT_KUBECONFIG = Path("run/sandbox.kubeconfig")
_USAGE_ERROR = 2
_OLDEST = "1.36"


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
@click.option(
    "--release",
    type=click.Choice(["1.36", "1.37", "1.38"]),
    default=_OLDEST,
    show_default=True,
    help="The Kubernetes release whose API versions are served.",
)
@click.option(
    "--real",
    is_flag=True,
    help="Run a real kube-apiserver and etcd: --assets, $KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin.",
)
@click.option(
    "--assets",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that has kube-apiserver and etcd; with --real.",
)
@click.option(
    "--pod-groups", is_flag=True, help="Have a real kube-apiserver serve PodGroups, which are alpha."
)
@click.option(
    "--api-server-flag",
    "api_server_flags",
    multiple=True,
    metavar="FLAG",
    help="One more flag for the real kube-apiserver, such as --feature-gates=A=true. Repeatable.",
)
def up(
    *,
    port: int,
    kubeconfig: Path,
    sources: tuple[Path, ...],
    authorization_mode: str,
    images: tuple[str, ...],
    release: str,
    real: bool,
    assets: Path | None,
    pod_groups: bool,
    api_server_flags: tuple[str, ...],
    **settings: Any,
) -> None:
    """Serve until interrupted; prints one line when ready."""
    # Imported here so that the other verbs start quickly.
    from berth.scheduler.loop.event_loop import collect_seldom, run  # noqa: PLC0415 (see above)

    collect_seldom()
    from berth.config.releases.release import named  # noqa: PLC0415 (see above)
    from berth.demo.dataset import DatasetError  # noqa: PLC0415 (see above)
    from berth.sandbox import SandboxError, SandboxOptions  # noqa: PLC0415 (see above)
    from berth.sandbox.containers import Images  # noqa: PLC0415 (see above)
    from berth.serving.errors import StartError  # noqa: PLC0415 (see above)

    rbac = authorization_mode == "RBAC"
    try:
        if real:
            _refuse(
                {"--run-image": images, "--release": release != _OLDEST, **_in_memory_only(settings)},
                "leave it out with --real",
            )
            shared = {"port": port, "rbac": rbac, "kubelets": settings["kubelets"]}
            found = _real_options(assets, pod_groups=pod_groups, api_server_flags=api_server_flags, **shared)
            asyncio.run(_serve_real(found, kubeconfig, sources))
            return
        only_real = {"--assets": assets, "--pod-groups": pod_groups, "--api-server-flag": api_server_flags}
        _refuse(only_real, "add --real")
        options = SandboxOptions(
            port=port, rbac=rbac, images=Images.parse(images), release=named(release), **settings
        )
        run(_serve(options, kubeconfig, sources))
    except (SandboxError, DatasetError, StartError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(_USAGE_ERROR)


def _in_memory_only(settings: dict[str, Any]) -> dict[str, Any]:
    return {"--data-file": settings["data_file"], "--controllers": settings["controllers"]}


def _refuse(given: dict[str, Any], remedy: str) -> None:
    from berth.sandbox import SandboxError  # noqa: PLC0415 (quick start of the other verbs)

    for option, value in given.items():
        if value:
            raise SandboxError(f"{option} has no meaning here: {remedy}")


def _real_options(assets: Path | None, **more: Any) -> "RealOptions":
    from berth.sandbox.real import RealOptions, find_assets  # noqa: PLC0415 (quick start of the other verbs)

    return RealOptions(find_assets(assets, os.environ), **more)


def _interrupted() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _tell_ready(url: str, kubeconfig: Path, loaded: int) -> None:
    try_it = f"kubectl --kubeconfig {kubeconfig} get nodes"
    click.echo(f"sandbox ready at {url} (loopback only), {loaded} objects loaded; try: {try_it}")


async def _serve(options: "SandboxOptions", kubeconfig: Path, sources: tuple[Path, ...]) -> None:
    from berth.demo.dataset import open_dataset  # noqa: PLC0415 (quick start of the other verbs)
    from berth.sandbox import serve  # noqa: PLC0415 (quick start of the other verbs)

    stop = _interrupted()
    async with await serve(options) as running:
        loaded = sum(running.load(open_dataset(path).load().in_creation_order()) for path in sources)
        running.write_kubeconfig(kubeconfig)
        _tell_ready(running.url, kubeconfig, loaded)
        await stop.wait()


async def _serve_real(options: "RealOptions", kubeconfig: Path, sources: tuple[Path, ...]) -> None:
    stop = asyncio.ensure_future(_interrupted().wait())
    work = asyncio.ensure_future(_run_real(options, kubeconfig, sources))
    await asyncio.wait((stop, work), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def _run_real(options: "RealOptions", kubeconfig: Path, sources: tuple[Path, ...]) -> None:
    from berth.demo.dataset import open_dataset  # noqa: PLC0415 (quick start of the other verbs)
    from berth.sandbox.real import serve_real  # noqa: PLC0415 (quick start of the other verbs)

    async with await serve_real(options) as running:
        loaded = 0
        for path in sources:
            loaded += await running.load(open_dataset(path).load().in_creation_order())
        running.write_kubeconfig(kubeconfig)
        _tell_ready(running.url, kubeconfig, loaded)
        await running.failed()
