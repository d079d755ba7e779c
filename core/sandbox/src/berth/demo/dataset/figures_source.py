"""The openb cluster rebuilt from this project's condensed table: distinct shapes and how often each occurs.

`condense` made the table; `figures/` holds it. Nodes come in the table's order, pods in an order drawn from
the seed, since a trace grouped by shape would be an easy question.

Source: openb, cluster-trace-gpu-v2023 of Alibaba's clusterdata; Weng et al., "Beware of Fragmentation",
USENIX ATC 2023.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import NamedTuple, TypeVar

from berth.demo.dataset.assignment import by_gpu
from berth.demo.dataset.csv_rows import CsvColumn, Row, read_rows, whole
from berth.demo.dataset.kubernetes_objects import openb_objects
from berth.demo.dataset.openb_csv import NODE_FIGURES, POD_FIGURES, node_shape, pod_shape
from berth.demo.dataset.shapes import Assignment, NamedNode, NamedPod, NodeShape, PodShape
from berth.demo.dataset.source import Objects

NODE_SHAPES_FILE = "openb_node_shapes.csv"
POD_SHAPES_FILE = "openb_pod_shapes.csv"
COUNT = whole("count", least=1, most=1_000_000)

S = TypeVar("S")


class Figures(NamedTuple):
    """Distinct shapes, each with the number of nodes or pods that have it."""

    nodes: dict[NodeShape, int]
    pods: dict[PodShape, int]


@dataclass(frozen=True)
class OpenbFigures:
    """The 1,523 nodes and 8,152 pods of the trace, from package data; or another table's."""

    seed: int = 0
    assign: Assignment | None = None
    figures: Figures | None = field(default=None, repr=False)

    def load(self) -> Objects:
        """Build the cluster; the same seed gives the same documents in the same order."""
        figures = self.figures or package_figures()
        nodes = [NamedNode(f"openb-node-{i:04d}", s) for i, s in enumerate(expanded(figures.nodes))]
        shapes = shuffled(expanded(figures.pods), self.seed)
        pods = [NamedPod(f"openb-pod-{i:04d}", shape) for i, shape in enumerate(shapes)]
        return openb_objects(nodes, pods, self.assign or by_gpu(self.seed))


def package_figures() -> Figures:
    """Read the table that comes with the package."""
    folder = files("berth.demo.dataset") / "figures"
    return parse_figures(
        (folder / NODE_SHAPES_FILE).read_bytes(),
        (folder / POD_SHAPES_FILE).read_bytes(),
    )


def parse_figures(nodes: bytes, pods: bytes) -> Figures:
    """Read a condensed table from the contents of its two files.

    Raises:
        BrokenLineError: the first broken line of either.
    """
    return Figures(
        _counts(NODE_SHAPES_FILE, nodes, NODE_FIGURES, node_shape),
        _counts(POD_SHAPES_FILE, pods, POD_FIGURES, pod_shape),
    )


def expanded(counts: dict[S, int]) -> list[S]:
    """Repeat each shape as often as it occurs."""
    return [shape for shape, count in counts.items() for _ in range(count)]


def shuffled(shapes: Sequence[S], seed: int) -> list[S]:
    """Give the shapes in an order that depends on the seed alone, on every version of Python."""
    # Only random() is promised to repeat across versions; shuffle() is not.
    chance = random.Random(seed)
    return sorted(shapes, key=lambda _: chance.random())


def _counts(file: str, data: bytes, columns: Sequence[CsvColumn], shape: Callable[[Row], S]) -> dict[S, int]:
    counts: dict[S, int] = {}
    for row in read_rows(file, data, (COUNT, *columns)):
        key = shape(row)
        if key in counts:
            raise row.broken("count", str(row["count"]), "each shape on one line only")
        counts[key] = row["count"]
    return counts
