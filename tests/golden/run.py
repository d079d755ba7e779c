"""Running families of vectors, in several processes if wanted."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.golden import configuration, hints, one_pod, preempt, requeue, schedule
from tests.golden.differences import differences, without
from tests.golden.mended import MENDED
from tests.golden.vectors import Vector, families, read

ANSWERS = {
    "schedule": schedule.answer,
    "requests": one_pod.requests,
    "gates": one_pod.gates,
    "queuesort": one_pod.queuesort,
    "hint": hints.answer,
    "preempt": preempt.answer,
    "requeue": requeue.answer,
    "config": configuration.answer,
}
CHUNK = 25


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one vector."""

    name: str
    differences: list[str] = field(default_factory=list)
    missing: frozenset[str] = frozenset()
    """Plugins whose part of the answer was not compared."""
    unknown_kind: str = ""
    mended: str = ""
    """The report of upstream's fault that the difference mends."""

    @property
    def passed(self) -> bool:
        return not self.differences and not self.missing and not self.unknown_kind


@dataclass(slots=True)
class Family:
    """What became of one family."""

    name: str
    results: list[Result]

    @property
    def passed(self) -> int:
        return sum(result.passed for result in self.results)

    @property
    def complete(self) -> bool:
        return self.passed == len(self.results)

    def lines(self) -> Iterator[str]:
        """The family's line, and a line for each thing that kept it from being compared in full."""
        yield f"{self.name} {self.passed}/{len(self.results)}"
        missing = sorted(set().union(*(result.missing for result in self.results)))
        if missing:
            partly = [not result.differences for result in self.results if result.missing]
            rest = f"the rest agrees in {sum(partly)}/{len(partly)}"
            yield f"{self.name} missing plugins: {', '.join(missing)} ({rest})"
        for result in self.results:
            if result.mended:
                yield f"  {result.name}: mended here, {result.mended}"
        for kind in sorted({result.unknown_kind for result in self.results} - {""}):
            yield f"{self.name} has no runner for kind {kind}"


def run(folder: Path, names: list[str], jobs: int) -> Iterator[Family]:
    """The families, one after the other; all of the folder where no names are given.

    Raises: KeyError for a family that the folder does not hold.
    """
    found = families(folder)
    with ProcessPoolExecutor(jobs, initializer=be_quiet) as pool:
        for name in names or found:
            vectors = list(read(found[name]))
            results = pool.map(check, vectors, chunksize=CHUNK) if jobs > 1 else map(check, vectors)
            yield Family(name, list(results))


def be_quiet() -> None:
    """Leave out the warnings of plugins that are missing: the families' lines tell of them."""
    logging.disable(logging.WARNING)


def check(vector: Vector) -> Result:
    """One vector's result; an answer that raises is a difference."""
    if vector.kind not in ANSWERS:
        return Result(vector.name, unknown_kind=vector.kind)
    try:
        found, absent = asyncio.run(ANSWERS[vector.kind](vector.scenario))
    except Exception as error:  # noqa: BLE001 - reported as this vector's difference, the others go on
        return Result(vector.name, [f"raised {type(error).__name__}: {error}"])
    missing = frozenset(name for name in absent if named(vector, name))
    different = list(differences(without(vector.expected, missing), found))
    if different and vector.name in MENDED:
        return Result(vector.name, mended=MENDED[vector.name])
    return Result(vector.name, different, missing)


def named(vector: Vector, plugin: str) -> bool:
    """Whether the vector has anything to do with the plugin."""
    parts = (vector.expected.get(key, {}) for key in ("preFilter", "filter", "preEnqueue", "scores"))
    asked = (vector.scenario.get("plugin"), *vector.expected.get("rejectedBy", ()))
    return plugin in asked or any(plugin in part for part in parts)
