"""`berth plugin record` and `berth plugin replay`: a plugin's calls of one run, put to it once more."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from berth.cli.asking.access import ServerAccess, asks_a_scheduler
from berth.cli.failing import EXIT_FAILED, fail
from berth.cli.plugins.target import one_process

BLOCK_BYTES = 1 << 16
MEBIBYTE = 1 << 20
PATIENCE_SECONDS = 60.0
_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("name")
@asks_a_scheduler
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="The file to make, mode 0600."
)
@click.option("--cycles", type=click.IntRange(1), help="Until so many scheduling attempts have ended.")
@click.option("--seconds", type=click.FloatRange(0.001), help="For so long; 30 where no --cycles are given.")
@click.option(
    "--max-size", type=click.IntRange(1), default=256, show_default=True, help="MiB that the file may have."
)
def record(
    name: str,
    access: ServerAccess,
    *,
    output: Path,
    cycles: int | None,
    seconds: float | None,
    max_size: int,
) -> None:
    """Write down what passes between a running scheduler and its plugin NAME.

    The file begins with the plugin's arguments and the whole state, and holds every call with its answer and
    its time, so that `berth plugin replay` needs nothing else. It holds pods as the API server has them: keep
    it as you keep those. Ctrl-C ends it in order. Who records needs the verb `post` on
    /plugins/NAME/recording.
    """
    server = one_process(access, "a recording is of one process")
    if cycles is None and seconds is None:
        seconds = 30.0
    asked: dict[str, Any] = {"bytes": max_size * MEBIBYTE}
    asked |= {"attempts": cycles} if cycles is not None else {}
    asked |= {"seconds": seconds} if seconds is not None else {}
    patience = None if seconds is None else seconds + PATIENCE_SECONDS
    with server.stream(f"/plugins/{name}/recording", "POST", patience, **asked) as response:
        _write(output, response)


def _write(output: Path, response: Any) -> None:
    from berth.replay.writing import RecordingWriter  # noqa: PLC0415 (the other verbs start quickly)

    with _private(output) as file:
        writer = RecordingWriter(file.write)
        try:
            while block := response.read1(BLOCK_BYTES):
                writer.take(block)
        except KeyboardInterrupt:
            writer.stop()
    click.echo(f"{output}: {writer.summary}")
    if not writer.ended:
        fail(f"{output}: the scheduler went away before the recording ended; what is there can be replayed")


@contextmanager
def _private(path: Path) -> Iterator[Any]:
    """A new file that only this user may read, unbuffered."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        fail(f"{path} is there already: name another file")
    except OSError as error:
        fail(f"{path}: {error.strerror}: name a file that can be made")
    with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor has no path
        yield file


@click.command()
@click.argument("file", type=_file)
@click.argument("address")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--ignore",
    type=click.Choice(["scores", "reasons", "hints"]),
    multiple=True,
    help="What need not be the same; repeatable. Without reasons a node only has to pass or not.",
)
@click.option("--timeout", default=10.0, show_default=True, help="How long one answer may take, in seconds.")
@click.option("--bind", is_flag=True, help="Repeat Bind too, which writes to the plugin's API server.")
@click.option("--show", default=20, show_default=True, help="So many differences are spelled out as text.")
@click.option("--ca", type=_file, help="Over TCP: whose certificate the plugin has to show.")
@click.option("--cert", type=_file, help="Over TCP: the certificate that is shown to it.")
@click.option("--key", type=_file, help="Over TCP: that certificate's key.")
def replay(file: Path, address: str, *, output: str, show: int, **given: Any) -> None:
    """Put the calls recorded in FILE to the plugin at ADDRESS, and compare its answers with those recorded.

    No scheduler and no API server takes part. The plugin is configured and shown the state as it was
    recorded; don't replay to a plugin that a scheduler is using.

    Exit code 0: every answer is the same; 1: some differ; 2: there was nothing to compare.
    """
    from berth.commands.verification import tls_of  # noqa: PLC0415 (as below)
    from berth.replay import RecordingError, ReplayError, ReplayOptions, as_json, as_text  # noqa: PLC0415 (the other verbs start quickly)
    from berth.replay import replay as run  # noqa: PLC0415 (as above)

    options = ReplayOptions(
        address,
        tls=tls_of(given["ca"], given["cert"], given["key"]),
        ignore=frozenset(given["ignore"]),
        seconds=given["timeout"],
        bind=given["bind"],
    )
    try:
        outcome = asyncio.run(run(file, options))
    except (RecordingError, ReplayError) as error:
        fail(error)
    click.echo(as_json(outcome) if output == "json" else as_text(outcome, show))
    if outcome.differences:
        sys.exit(EXIT_FAILED)
