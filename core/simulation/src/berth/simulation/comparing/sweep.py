"""Many simulations of one input, over weights and seeds: side by side on this machine, or on a Dask cluster.

    axes --> runs --> those not in the results --> processes, or Dask workers --> lines of the results

An interrupted sweep resumes: runs that are in the results are not repeated. A run is
identified by everything that its outcome depends on, including the contents of input and configuration.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.simulation.comparing.compare import weighed
from berth.simulation.errors import SimulationError
from berth.simulation.plugins.plugin_settings import DEFAULT, files_of, read_scheduler
from berth.simulation.reading.inputs import OPENB, read_cluster
from berth.simulation.reading.packed_lines import NO_JSON
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.outcome import API_VERSION, SimulationSummary, summed_up
from berth.simulation.what_if.changes import changed, read_changes

MAX_RUNS: Final = 10_000
SEED: Final = "seed"
HEAVIEST: Final = 2**31 - 1


class SweepError(SimulationError):
    """Invalid axes, or results of another sweep."""


class SweepRun(msgspec.Struct, rename="camel", frozen=True):
    """One simulation of a sweep."""

    configuration: str
    seed: int
    weights: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """The run as a table shows it."""
        weights = "".join(f" {plugin}={weight}" for plugin, weight in self.weights)
        return f"{self.configuration}{weights} seed={self.seed}"


class FinishedRun(msgspec.Struct, rename="camel", frozen=True):
    """A line of the results."""

    digest: str
    run: SweepRun
    summary: SimulationSummary


class Sweep(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """All runs, in the order of the axes."""

    api_version: str = API_VERSION
    kind: str = "Sweep"
    runs: list[SimulationSummary]


class SweepInput(msgspec.Struct, frozen=True):
    """What all runs of a sweep have in common."""

    inputs: tuple[str, ...]
    feature_gates: str = ""
    what_if: tuple[str, ...] = ()
    plugins_file: str = ""
    """The list of plugins of configurations that name none."""
    ways: tuple[str, ...] = ()
    """How plugins are reached, as --plugin says it."""
    release: str = ""
    """The release to decide as, as --release says it."""


Work = Callable[[SweepInput, Sequence[SweepRun]], Iterable[tuple[SweepRun, SimulationSummary]]]
"""Does runs and gives each as it is done."""


def runs_of(configurations: Sequence[str], axes: Sequence[str], seed: int) -> list[SweepRun]:
    """Every combination of the axes, for each configuration. Raises: SweepError.

    An axis is `seed=0..9`, or a Score plugin's weights as `NodeResourcesFit=1,5,10`.
    """
    read = dict(_axis(axis) for axis in axes)
    if len(read) != len(axes):
        raise SweepError("--sweep: an axis is given twice; give all of its values at once")
    seeds = read.pop(SEED, [seed])
    count = len(configurations) * len(seeds)
    for values in read.values():
        count *= len(values)
    if count > MAX_RUNS:
        raise SweepError(f"--sweep: {count} runs; {MAX_RUNS} at most")
    plugins = tuple(read)
    return [
        SweepRun(configuration, one, tuple(zip(plugins, weights, strict=True)))
        for configuration in configurations
        for weights in itertools.product(*read.values())
        for one in seeds
    ]


def _axis(text: str) -> tuple[str, list[int]]:
    name, equals, values = text.partition("=")
    found: list[int] = []
    try:
        for part in values.split(","):
            first, dots, last = part.partition("..")
            numbers = range(int(first), int(last if dots else first) + 1)
            if len(numbers) > MAX_RUNS:
                raise SweepError(f"--sweep: {text[:60]!r}: {MAX_RUNS} values at most")
            found += numbers
    except ValueError:
        equals = ""
    if not (name and equals and found) or min(found) < 0 or max(found) > HEAVIEST:
        raise SweepError(f"--sweep: {text[:60]!r}: write seed=0..9, or PLUGIN=1,5,10")
    return name, list(dict.fromkeys(found))


def sweep(subject: SweepInput, runs: Sequence[SweepRun], results: Path | None, work: Work) -> Sweep:
    """Do every run that the results do not have, and append it.

    Raises: SimulationError where a run fails; finished runs stay in the results.
    """
    digests = _digests(subject, runs)
    known = {done.digest: done.summary for done in _read(results)}
    left = [run for run in runs if digests[run] not in known]
    for run, summary in work(subject, left) if left else ():
        known[digests[run]] = summary
        _keep(FinishedRun(digests[run], run, summary), results)
    return Sweep(runs=[known[digests[run]] for run in runs])


def one(subject: SweepInput, run: SweepRun) -> SimulationSummary:
    """One run. Raises: SimulationError, ConfigError."""
    config, listed = files_of(run.configuration, subject.plugins_file)
    loaded, plugins = read_scheduler(
        config, subject.feature_gates, listed, ways=subject.ways, shared=True, release=subject.release
    )
    for plugin, weight in run.weights:
        loaded = weighed(loaded, plugin, weight)
    changes = read_changes(subject.what_if)
    cluster = changed(read_cluster(subject.inputs), changes)
    return summed_up(
        run.name, simulate(cluster, SimulationOptions(loaded, plugins, seed=run.seed, changes=changes))
    )


def in_processes(jobs: int) -> Work:
    """Do that many runs at a time, each in a process of its own."""

    def work(subject: SweepInput, runs: Sequence[SweepRun]) -> Iterator[tuple[SweepRun, SimulationSummary]]:
        with ProcessPoolExecutor(min(jobs, len(runs)), get_context("spawn")) as pool:
            futures = {pool.submit(one, subject, run): run for run in runs}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    return work


def on_dask(address: str) -> Work:
    """Do the runs on workers of a Dask cluster, which have Berth and the same files. Raises: SweepError."""

    def work(subject: SweepInput, runs: Sequence[SweepRun]) -> Iterator[tuple[SweepRun, SimulationSummary]]:
        try:
            from distributed import Client  # noqa: PLC0415 - an extra
            from distributed import as_completed as completed  # noqa: PLC0415 - an extra
        except ImportError:
            raise SweepError("--dask: install berth-simulation[dask] first") from None
        try:
            client = Client(address, timeout="10s")
        except OSError as error:
            raise SweepError(f"--dask: {address}: {error}; give the address of a Dask scheduler") from None
        with client:
            futures: Mapping[Any, SweepRun] = {
                client.submit(one, subject, run, pure=False): run for run in runs
            }
            for future in completed(futures):
                yield futures[future], future.result()

    return work


def _digests(subject: SweepInput, runs: Sequence[SweepRun]) -> dict[SweepRun, str]:
    """The digest that identifies each run: of contents, not of file names."""
    common = sha256(msgspec.json.encode((API_VERSION, subject.feature_gates, subject.release, *subject.ways)))
    for path in (*subject.inputs, *subject.what_if):
        common.update(_contents(path))
    found = {}
    for run in runs:
        digest = common.copy()
        for file in files_of(run.configuration, subject.plugins_file):
            digest.update(_contents(file or DEFAULT))
        digest.update(msgspec.json.encode((run.seed, run.weights)))
        found[run] = digest.hexdigest()
    return found


def _contents(path: str) -> bytes:
    """The digest of a file or of a folder's files; any other text is its own digest."""
    given = Path(path)
    try:
        files = sorted(p for p in given.iterdir() if p.is_file()) if given.is_dir() else [given]
        data = [sha256(each.read_bytes()).digest() for each in files]
    except OSError:
        data = [path.encode()] if path == OPENB or not given.suffix else [b"", path.encode()]
    return sha256(b"".join(data)).digest()


def _read(results: Path | None) -> Iterator[FinishedRun]:
    """The runs in the results; an incomplete last line is ignored."""
    if results is None or not results.exists():
        return
    lines = results.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            if line:
                yield msgspec.json.decode(line, type=FinishedRun)
        except NO_JSON as error:
            if number == len(lines):
                return
            raise SweepError(f"{results}:{number}: no line of a sweep ({error}); give another file") from None


def _keep(done: FinishedRun, results: Path | None) -> None:
    if results is None:
        return
    with results.open("ab+") as stream:
        # An incomplete last line is terminated, so that it is ignored and the next run has its own line.
        stream.seek(0, 2)
        if stream.tell():
            stream.seek(-1, 2)
            if stream.read(1) != b"\n":
                _drop_last_line(results)
    with results.open("ab") as stream:
        stream.write(msgspec.json.encode(done) + b"\n")


def _drop_last_line(results: Path) -> None:
    whole, _, _ = results.read_bytes().rpartition(b"\n")
    results.write_bytes(whole + b"\n" if whole else b"")
