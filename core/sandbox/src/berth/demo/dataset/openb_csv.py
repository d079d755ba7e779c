"""The openb trace's own CSV files, where a path to their folder is given.

The times and phases of the trace are checked and then left out: they say what another scheduler did.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from berth.demo.dataset.assignment import by_gpu
from berth.demo.dataset.csv_rows import Row, matching, optional_whole, read_file, read_rows, whole
from berth.demo.dataset.kubernetes_objects import MILLI_PER_GPU, openb_objects
from berth.demo.dataset.shapes import Assignment, NamedNode, NamedPod, NodeShape, PodShape
from berth.demo.dataset.source import Objects

NODES_FILE = "openb_node_list_all_node.csv"
PODS_FILE = "openb_pod_list_default.csv"

MAX_GPUS = 8
LABEL = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
A_NAME = "lower-case letters, digits and inner dashes, 63 at most"
A_LABEL = "a Kubernetes label value"

NODE_FIGURES = (
    whole("cpu_milli"),
    whole("memory_mib"),
    whole("gpu", most=MAX_GPUS),
    matching("model", f"({LABEL})?", f"{A_LABEL}, or nothing"),
)
POD_FIGURES = (
    whole("cpu_milli"),
    whole("memory_mib"),
    whole("num_gpu", most=MAX_GPUS),
    whole("gpu_milli", most=MILLI_PER_GPU),
    matching("gpu_spec", rf"({LABEL}(\|{LABEL})*)?", "GPU models separated by |, or nothing"),
    matching("qos", LABEL, A_LABEL),
)
NODE_COLUMNS = (matching("sn", NAME, A_NAME), *NODE_FIGURES)
POD_COLUMNS = (
    matching("name", NAME, A_NAME),
    *POD_FIGURES,
    matching("pod_phase", "Pending|Running|Succeeded|Failed|Unknown", "a pod phase"),
    optional_whole("creation_time"),
    optional_whole("deletion_time"),
    optional_whole("scheduled_time"),
)


class OpenbFiles(msgspec.Struct, frozen=True):
    """A folder with a node list and a pod list of the trace, in the files' order."""

    folder: Path
    nodes_file: str = NODES_FILE
    pods_file: str = PODS_FILE
    seed: int = 0
    assign: Assignment | None = None

    def load(self) -> Objects:
        """Read both files, then build.

        Raises:
            BrokenLineError: the first broken line; nothing is loaded.
            UnreadableSourceError: a file is missing.
        """
        nodes = read_nodes(self.folder / self.nodes_file)
        pods = read_pods(self.folder / self.pods_file)
        return openb_objects(nodes, pods, self.assign or by_gpu(self.seed))


def read_nodes(path: Path) -> list[NamedNode]:
    """Read a node list of the trace."""
    rows = read_rows(str(path), read_file(path), NODE_COLUMNS)
    _refuse_repeats(rows, "sn")
    return [NamedNode(row["sn"], node_shape(row)) for row in rows]


def read_pods(path: Path) -> list[NamedPod]:
    """Read a pod list of the trace."""
    rows = read_rows(str(path), read_file(path), POD_COLUMNS)
    _refuse_repeats(rows, "name")
    return [NamedPod(row["name"], pod_shape(row)) for row in rows]


def read_times(path: Path) -> dict[str, tuple[int | None, int | None]]:
    """Read when each pod of the trace came and went, by its name. Units: seconds of the trace's clock."""
    rows = read_rows(str(path), read_file(path), POD_COLUMNS)
    return {row["name"]: (row["creation_time"], row["deletion_time"]) for row in rows}


def node_shape(row: Row) -> NodeShape:
    """Take a node's figures from a line, if they agree with each other."""
    gpus, model = row["gpu"], row["model"]
    if gpus and not model:
        raise row.broken("model", "nothing", f"the model of the node's {gpus} GPUs")
    if model and not gpus:
        raise row.broken("model", repr(model), "nothing, as the node has no GPU")
    return NodeShape(row["cpu_milli"], row["memory_mib"], gpus, model)


def pod_shape(row: Row) -> PodShape:
    """Take a task's figures from a line, if they agree with each other."""
    gpus, milli, models = row["num_gpu"], row["gpu_milli"], row["gpu_spec"]
    if not gpus and milli:
        raise row.broken("gpu_milli", str(milli), "0, as num_gpu is 0")
    if not gpus and models:
        raise row.broken("gpu_spec", repr(models), "nothing, as num_gpu is 0")
    if gpus == 1 and not milli:
        raise row.broken("gpu_milli", "0", "a share of the GPU from 1 to 1000")
    if gpus > 1 and milli != MILLI_PER_GPU:
        raise row.broken("gpu_milli", str(milli), "1000, as several GPUs are only taken whole")
    accepted = tuple(models.split("|")) if models else ()
    return PodShape(row["cpu_milli"], row["memory_mib"], gpus, milli, accepted, row["qos"])


def _refuse_repeats(rows: Iterable[Row], column: str) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        first = seen.setdefault(row[column], row.line)
        if first != row.line:
            raise row.broken(column, repr(row[column]), f"a name that line {first} does not have")
