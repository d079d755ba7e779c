"""Nodes and pods for the sandbox, as plain Kubernetes documents, from whichever source holds them.

Three sources give the same thing, `Objects`: Kubernetes files (`ManifestFiles`), the openb trace's own CSV
files (`OpenbFiles`), and this project's condensed table of that trace (`OpenbFigures`). `open_dataset` picks
one by looking at a path. The caller, `berth sandbox` or `make run`, creates the objects through the API.
"""

from berth.demo.dataset.choose import open_dataset
from berth.demo.dataset.errors import (
    BrokenDocumentError,
    BrokenLineError,
    DatasetError,
    UnreadableSourceError,
)
from berth.demo.dataset.figures_source import OpenbFigures
from berth.demo.dataset.manifests import ManifestFiles
from berth.demo.dataset.openb_csv import OpenbFiles
from berth.demo.dataset.source import Dataset, Objects

__all__ = [
    "BrokenDocumentError",
    "BrokenLineError",
    "Dataset",
    "DatasetError",
    "ManifestFiles",
    "Objects",
    "OpenbFigures",
    "OpenbFiles",
    "UnreadableSourceError",
    "open_dataset",
]
