"""kube-scheduler and Berth on the same drawn cluster: `python -m tests.e2e.both groups --seeds 0 30`.

Prints, for each seed, the first step that came out differently and how. What is left to chance (equal scores)
may differ; a second run of the seed decides. A step whose victims differ by kubernetes/kubernetes#139030,
mended here (docs/upstream-faults.md), is no difference; what follows it is not compared.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from berth.demo.errors import DemoError
from tests.e2e import random_devices, random_groups
from tests.e2e.in_turn import play
from tests.e2e.outcomes import comparable, differences, victims_by_their_own_priority
from tests.kube_scheduler import WITHOUT, kube_scheduler

DRAWN = {"groups": random_groups, "devices": random_devices}


async def compare(kind, seed, folder):
    """How the first step that differs does, [(path, theirs, ours)], and the fault that explains it."""
    drawn = DRAWN[kind].Drawn(seed)
    played = []
    for name, command in (("kube", (kube_scheduler(),)), ("berth", ("berth", "scheduler"))):
        own = folder / name
        own.mkdir()
        which = {"flags": drawn.flags, "scheduler": command}
        played.append(await play(own, drawn.objects, drawn.steps, DRAWN[kind].CONFIGURATION, **which))
        (own / "outcomes.json").write_text(json.dumps(played[-1], indent=1))
    for step in drawn.steps:
        both = comparable(*(outcomes[step.name] for outcomes in played))
        if found := list(differences(*both, (step.name,))):
            return found, explanation(drawn, step, played)
    return [], ""


def explanation(drawn, step, played):
    """The number of the fault that explains how the step's victims differ; "" if none does."""
    if not isinstance(drawn, random_groups.Drawn):
        return ""
    gone = (set(outcomes[step.name]["gone"]) for outcomes in played)
    return "139030" if victims_by_their_own_priority(*drawn.victims(step.name), *gone) else ""


async def main():
    """Compare seed after seed; 0 where nothing differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=DRAWN)
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10), metavar=("FIRST", "END"))
    wanted = parser.parse_args()
    if kube_scheduler() is None:
        print(WITHOUT, file=sys.stderr)  # noqa: T201 - a command talks on its streams
        return 2
    different = 0
    for seed in range(*wanted.seeds):
        folder = Path(tempfile.mkdtemp(prefix=f"{wanted.kind}-{seed}-"))
        try:
            found, fault = await compare(wanted.kind, seed, folder)
        except (AssertionError, DemoError, TimeoutError) as error:
            found, fault = [(f"{type(error).__name__}: {error}", None, None)], ""
        different += bool(found) and not fault
        why = f" by {fault}" if fault else ""
        print(f"{wanted.kind} {seed}: {len(found)} differences{why}, {folder}", flush=True)  # noqa: T201 - as above
        for path, theirs, ours in found:
            print(f"  {path}\n    {json.dumps(theirs)}\n    {json.dumps(ours)}", flush=True)  # noqa: T201 - as above
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
