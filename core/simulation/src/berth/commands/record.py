"""`berth record`: what happens in a live cluster, seen from outside and written to files."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from berth.cli.asking.cluster import KubeconfigCluster, asks_a_cluster
from berth.cli.failing import fail
from berth.commands.snapshot import anonymizer_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from berth.recordings.cluster.files import FileBounds
    from berth.simulation.reading.anonymize import Anonymizer

MEBIBYTE = 1 << 20


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@asks_a_cluster
@click.option(
    "--max-file-size",
    "max_mebibytes",
    default=64,
    show_default=True,
    type=click.IntRange(1, 1 << 20),
    help="MiB, packed, after which the next file begins.",
)
@click.option(
    "--max-files",
    "max_files",
    default=16,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="So many files stay in DIR; the oldest go first.",
)
@click.option("--seconds", type=click.FloatRange(0.001), help="For so long; by default until SIGTERM.")
@click.option("--anonymize", is_flag=True, help="Replace names, labels and images by a keyed hash.")
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The key of the hash, for recordings to compare; by default one of chance, which is not kept.",
)
def record(
    *,
    folder: Path,
    cluster: KubeconfigCluster,
    max_mebibytes: int,
    max_files: int,
    seconds: float | None,
    anonymize: bool,
    key_file: Path | None,
) -> None:
    """Write to files in DIR what happens in a cluster, as far as decisions read it, whatever schedules there.

    The cluster is only read. Each file begins with what is there, so that `berth simulate replay FILE` needs
    no other, and is of mode 0600.

    Exits with 0 after SIGINT, SIGTERM or --seconds, and with 2 where the cluster cannot be read or a file
    not be written.
    """
    # Imported here so that the other verbs start quickly.
    from berth.recordings.cluster.files import FileBounds  # noqa: PLC0415 (see above)
    from berth.recordings.errors import RecordingError  # noqa: PLC0415 (see above)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (see above)

    if key_file is not None and not anonymize:
        fail("--key-file has no meaning here: add --anonymize")
    bounds = FileBounds(max_mebibytes * MEBIBYTE, max_files)
    anonymizer = anonymizer_of(key_file) if anonymize else None
    try:
        with cluster.asked():
            asyncio.run(_record(folder, cluster, bounds, seconds, anonymizer))
    except (SimulationError, RecordingError) as error:
        fail(error)


async def _record(
    folder: Path,
    cluster: KubeconfigCluster,
    bounds: "FileBounds",
    seconds: float | None,
    anonymizer: "Anonymizer | None",
) -> None:
    from berth.client.transport import Transport  # noqa: PLC0415 (quick start)
    from berth.framework.clock import SYSTEM_CLOCK  # noqa: PLC0415 (quick start)
    from berth.observer.observing import Observer  # noqa: PLC0415 (quick start)
    from berth.recordings.cluster.files import RotatingFiles  # noqa: PLC0415 (quick start)
    from berth.version import version  # noqa: PLC0415 (quick start)

    transport = Transport(await asyncio.to_thread(cluster.endpoint))
    observer = Observer(transport, anonymizer)
    files = RotatingFiles(
        folder,
        bounds,
        SYSTEM_CLOCK,
        observer.listing,
        version=version(),
        anonymized=anonymizer is not None,
    )
    try:
        await _until_stopped(observer.run(files), seconds)
    finally:
        await transport.aclose()
        files.close()
    click.echo(f"{files.events} events in {files.files} files in {folder}", err=True)
    if observer.set_aside:
        click.echo(f"warning: {observer.set_aside} versions of objects could not be read", err=True)


async def _until_stopped(work: "Coroutine[Any, Any, None]", seconds: float | None) -> None:
    """Run it until a signal or that time ends it. Raises: what it raises."""
    task = asyncio.create_task(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, task.cancel)
    with suppress(asyncio.CancelledError):
        await task
