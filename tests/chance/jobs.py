"""Jobs for a pool of processes, each a run in a folder of its own: a subject's seed, or a kept question."""

import asyncio
import json
import tempfile
from pathlib import Path

from berth.demo.errors import DemoError
from tests.chance.cluster import draw
from tests.chance.run import Found, again, run


def drawn(subject, seed, nodes, pods):
    """The title and the outcome of that subject and seed."""
    return f"{subject}-{seed}", _outcome(draw(subject, seed, nodes, pods))


def kept(path):
    """The title and the outcome of the question in that file."""
    return path.stem, _outcome(again(json.loads(path.read_text(encoding="utf-8"))))


def _outcome(made_of):
    with tempfile.TemporaryDirectory(prefix="berth-chance-") as folder:
        try:
            return asyncio.run(run(made_of, Path(folder)))
        except (DemoError, TimeoutError) as error:
            return Found(broken=f"{type(error).__name__} {error}")
