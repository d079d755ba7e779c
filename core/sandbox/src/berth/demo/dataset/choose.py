"""Which source a path stands for."""

from pathlib import Path

from berth.demo.dataset.figures_source import OpenbFigures
from berth.demo.dataset.manifests import ManifestFiles
from berth.demo.dataset.openb_csv import NODES_FILE, PODS_FILE, OpenbFiles
from berth.demo.dataset.source import Dataset


def open_dataset(
    path: Path | None = None,
    *,
    seed: int = 0,
    nodes_file: str | None = None,
    pods_file: str | None = None,
) -> Dataset:
    """Pick the source: no path is the condensed trace, a folder with CSV files is openb, else manifests.

    `nodes_file` and `pods_file` name other lists inside an openb folder; naming one makes the folder openb.
    """
    if path is None:
        return OpenbFigures(seed=seed)
    if nodes_file or pods_file or (path.is_dir() and any(path.glob("openb_*.csv"))):
        return OpenbFiles(path, nodes_file or NODES_FILE, pods_file or PODS_FILE, seed=seed)
    return ManifestFiles((path,))
