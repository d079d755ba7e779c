"""Make the condensed table from the trace's own files: `python -m berth.demo.dataset.condense DIR OUT`.

Run once, when the trace changes; OUT is `figures/` beside this module.
"""

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from berth.demo.dataset.errors import DatasetError
from berth.demo.dataset.figures_source import COUNT, NODE_SHAPES_FILE, POD_SHAPES_FILE, Figures
from berth.demo.dataset.openb_csv import (
    NODE_FIGURES,
    NODES_FILE,
    POD_FIGURES,
    PODS_FILE,
    read_nodes,
    read_pods,
)


def condense(csv_dir: Path) -> Figures:
    """Count the distinct shapes of the trace's files, smallest first.

    Raises:
        DatasetError: a file is missing or broken.
    """
    nodes = Counter(node.shape for node in read_nodes(csv_dir / NODES_FILE))
    pods = Counter(pod.shape for pod in read_pods(csv_dir / PODS_FILE))
    return Figures(dict(sorted(nodes.items())), dict(sorted(pods.items())))


def render(figures: Figures) -> dict[str, str]:
    """Write the table out, the text of each of its files by name."""
    node_rows = (
        (count, shape.milli_cpu, shape.memory_mib, shape.gpus, shape.model)
        for shape, count in figures.nodes.items()
    )
    pod_rows = (
        (
            count,
            shape.milli_cpu,
            shape.memory_mib,
            shape.gpus,
            shape.gpu_milli,
            "|".join(shape.models),
            shape.qos,
        )
        for shape, count in figures.pods.items()
    )
    return {
        NODE_SHAPES_FILE: _text([column.name for column in (COUNT, *NODE_FIGURES)], node_rows),
        POD_SHAPES_FILE: _text([column.name for column in (COUNT, *POD_FIGURES)], pod_rows),
    }


def main(arguments: Sequence[str]) -> int:
    """Condense DIR into OUT; the exit code is 2 where an input is wrong."""
    if len(arguments) != 2:  # noqa: PLR2004  DIR and OUT
        sys.stderr.write("usage: python -m berth.demo.dataset.condense DIR OUT\n")
        return 2
    source, target = map(Path, arguments)
    try:
        texts = render(condense(source))
        target.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (target / name).write_text(text, encoding="utf-8")
    except (DatasetError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
