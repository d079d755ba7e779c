"""Jobs for a pool of processes, each a run in a folder of its own: a subject's seed, or a kept question."""

import asyncio
import json
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from berth.demo.errors import DemoError
from tests.chance import comparing, simulating
from tests.chance.cluster import admissible, draw
from tests.chance.run import Found, again, run
from tests.e2e.api_servers import ApiServer

JUDGES = {"engine": comparing.differences, "simulate": simulating.differences}
"""Ways to ask Berth: its plugins about each node, or `berth simulate` about the cluster's files."""


@dataclass(frozen=True)
class Way:
    """How runs are made: which way Berth is asked, and whether on a real API server."""

    judge: str
    real: bool


def drawn(way, subject, seed, nodes, pods):
    """The title and the outcome of that subject and seed."""
    return f"{subject}-{seed}", _outcome(way, draw(subject, seed, nodes, pods))


def kept(way, path):
    """The title and the outcome of the question in that file."""
    return path.stem, _outcome(way, again(json.loads(path.read_text(encoding="utf-8"))))


def _outcome(way, made_of):
    with tempfile.TemporaryDirectory(prefix="berth-chance-") as folder:
        try:
            server = ApiServer(real=way.real)
            if way.real:
                made_of = admissible(made_of)
            return asyncio.run(run(made_of, Path(folder), judge=JUDGES[way.judge], server=server))
        except (DemoError, TimeoutError) as error:
            return Found(broken=f"{type(error).__name__} {error}")
        except Exception:  # noqa: BLE001 - one run that breaks off is reported, and the others go on
            return Found(broken=traceback.format_exc())
