"""Reading vector files: one JSON object a line, with a scenario and what is expected of it."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.configuration import outcome

PACKED, PLAIN = ".jsonl.gz", ".jsonl"


@dataclass(frozen=True, slots=True)
class Vector:
    """A question and its right answer."""

    scenario: dict[str, Any]
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        return self.scenario["name"]

    @property
    def kind(self) -> str:
        return self.scenario["kind"]


def families(folder: Path) -> dict[str, Path]:
    """The files of scheduling vectors by family; other files in the folder are left alone."""
    found = {}
    for path in sorted(folder.iterdir()):
        for ending in (PACKED, PLAIN):
            if path.name.endswith(ending) and _holds_scenarios(path):
                found[path.name.removesuffix(ending)] = path
    return found


def read(path: Path) -> Iterator[Vector]:
    """The vectors of one file."""
    for line in _lines(path):
        yield _vector(json.loads(line))


def _vector(document: dict[str, Any]) -> Vector:
    if "scenario" in document:
        return Vector(document["scenario"], document["expected"])
    asked = {"name": document["name"], "kind": "config", "input_yaml": document["input_yaml"]}
    return Vector(asked, outcome(document["resolved"], document["errors"]))


def _holds_scenarios(path: Path) -> bool:
    first = next(_lines(path), "{}")
    document = json.loads(first)
    return {"scenario", "expected"} <= document.keys() or {"input_yaml", "resolved"} <= document.keys()


def _lines(path: Path) -> Iterator[str]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt") as lines:
            yield from (line for line in lines if line.strip())
    else:
        yield from (line for line in path.read_text().splitlines() if line.strip())
