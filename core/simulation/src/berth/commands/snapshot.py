"""`berth snapshot`: a cluster as one file, to simulate on."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from berth.cli.asking.cluster import KubeconfigCluster, asks_a_cluster
from berth.cli.failing import fail
from berth.framework.pluralize import pluralize

if TYPE_CHECKING:
    from berth.simulation.reading.anonymize import Anonymizer


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@asks_a_cluster
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="In place of standard output."
)
@click.option("--anonymize", is_flag=True, help="Replace names, labels and images by a keyed hash.")
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The key of the hash, for snapshots to compare; by default one of chance, which is not kept.",
)
def snapshot(
    *,
    files: tuple[Path, ...],
    cluster: KubeconfigCluster,
    output: Path | None,
    anonymize: bool,
    key_file: Path | None,
) -> None:
    """Write everything that decisions read to a snapshot file: of a cluster, or of FILES.

    The cluster is only read. FILES are YAML or JSON, as `kubectl get ... -o yaml` prints them, or snapshots.
    Exits with 0, or with 2 where something cannot be read.
    """
    # Imported here so that the other verbs start quickly.
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (see above)

    if output is None and sys.stdout.isatty():
        fail("a snapshot is no text: add -o cluster.json.zst, or redirect the output")
    if key_file is not None and not anonymize:
        fail("--key-file has no meaning here: add --anonymize")
    try:
        anonymizer = anonymizer_of(key_file) if anonymize else None
        if files:
            documents = _of_files(files, anonymized=anonymize)
        else:
            documents = _of_cluster(cluster, anonymized=anonymize)
        with cluster.asked():
            count = _write(documents, anonymizer, output)
    except SimulationError as error:
        fail(error)
    click.echo(pluralize(count, "object"), err=True)


def anonymizer_of(key_file: Path | None) -> "Anonymizer":
    """By the key in the file, or one of chance; ends the program where the file has none."""
    from berth.simulation.reading.anonymize import Anonymizer  # noqa: PLC0415 (quick start)

    try:
        key = key_file.read_bytes() if key_file else secrets.token_bytes()
    except OSError as error:
        fail(f"--key-file: {key_file}: {error.strerror or error}")
    if not key.strip():
        fail(f"--key-file: {key_file}: found nothing; put some random text there")
    return Anonymizer(key)


def _of_files(files: tuple[Path, ...], *, anonymized: bool) -> Iterator[bytes]:
    import msgspec  # noqa: PLC0415 (quick start)

    from berth.simulation.errors import InputError  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.inputs import STRAY_POD, read_cluster  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.kinds import SCHEDULER_OBJECTS, document_of  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.listing import shown_scheduler_object  # noqa: PLC0415 (quick start)
    from berth.simulation.text import left_out_lines  # noqa: PLC0415 (quick start)

    cluster = read_cluster(files)
    for revision in cluster.workloads:
        remedy = "a snapshot has no owners of a trace; give the trace itself to `berth simulate`"
        raise InputError(f"{revision.owner}: {remedy}")
    for line in left_out_lines({kind: n for kind, n in cluster.left_out.items() if kind != STRAY_POD}):
        click.echo(line, err=True)
    yield from (document_of(obj, kind) for kind, obj in cluster.all())
    for other in () if anonymized else cluster.others:
        resource = SCHEDULER_OBJECTS.get(other["kind"])
        if resource is not None and other["apiVersion"] == resource.api_version:
            yield msgspec.json.encode(shown_scheduler_object(other["kind"], other))


def _of_cluster(cluster: KubeconfigCluster, *, anonymized: bool) -> Iterator[bytes]:
    """The live objects, a page in memory at a time."""
    from berth.client.transport import Transport  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.listing import list_cluster, list_scheduler_objects  # noqa: PLC0415 (quick start)

    with asyncio.Runner() as runner:

        async def opened() -> Transport:
            return Transport(cluster.endpoint())

        transport = runner.run(opened())
        listings = [list_cluster(transport)]
        if not anonymized:
            listings.append(list_scheduler_objects(transport))

        async def one(objects: AsyncIterator[bytes]) -> bytes | None:
            return await anext(objects, None)

        try:
            for objects in listings:
                while (document := runner.run(one(objects))) is not None:
                    yield document
        finally:
            runner.run(transport.aclose())


def _write(documents: Iterable[bytes], anonymizer: "Anonymizer | None", output: Path | None) -> int:
    import msgspec  # noqa: PLC0415 (quick start)

    from berth.framework.clock import SYSTEM_CLOCK  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.snapshot_file import API_VERSION, KIND, SnapshotHeader, write  # noqa: PLC0415 (quick start)

    if anonymizer is not None:
        named = anonymizer
        documents = (msgspec.json.encode(named.document(msgspec.json.decode(each))) for each in documents)
    taken = "" if anonymizer is not None else _timestamp(SYSTEM_CLOCK.wall())
    header = SnapshotHeader(API_VERSION, KIND, anonymizer is not None, taken)

    def to(stream: BinaryIO) -> int:
        return write(stream, documents, header)

    if output is None:
        return to(sys.stdout.buffer)
    is_new = not output.exists()
    try:
        with output.open("wb") as stream, ExitStack() as unfinished:
            unfinished.callback(output.unlink if is_new else lambda: None)
            count = to(stream)
            unfinished.pop_all()
            return count
    except OSError as error:
        fail(f"{output}: {error.strerror or error}")


def _timestamp(seconds: float) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 (quick start)

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
