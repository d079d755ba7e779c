"""GPU sharing: the allocation experiment of Weng et al. (USENIX ATC 2023) through real processes.

Tasks of the trace are drawn with replacement until they ask for 130 % of its GPUs, and are scheduled one
after the other; what is then allocated of all GPUs is the policy's figure, beside that of the paper.
"""

import asyncio
import json
from statistics import fmean

import click

from berth.demo.dataset import open_dataset
from tests.benchmarks.gpu_sharing_alone import alone
from tests.benchmarks.gpu_sharing_draw import drawn
from tests.benchmarks.gpu_sharing_run import allocation
from tests.benchmarks.tables import Table

PAPER = {
    "random": 87.5,
    "dot-product": 90.9,
    "clustering": 91.9,
    "packing": 92.0,
    "best-fit": 93.1,
    "fgd": 95.4,
}
"""GPU allocation at 130 % demand on the default trace, mean of 10 seeds, in percent."""
PAPER_DEMAND = 1.3
EVERY = (*PAPER, "fgd/used-first")
A_FEW = ("best-fit", "fgd/used-first")


def run(options):
    """One table: a row a policy, `fixed` ties as in the paper unless the policy's name says otherwise."""
    policies = EVERY if options.policies == "all" else tuple(filter(None, options.policies.split(",")))
    policies = policies or A_FEW
    known = {key_of(line): line for line in read(options.results)}
    asyncio.run(fill(known, policies, options))
    table(known, policies, options).show()


async def fill(known, policies, options):
    """Run what is not known yet, seed by seed, so that all policies have as many runs as time allows."""
    objects = open_dataset(options.openb, seed=0).load()
    places = asyncio.Semaphore(options.at_once)

    async def one(name, seed):
        async with places:
            policy, _, ties = name.partition("/")
            experiment = await asyncio.to_thread(drawn, objects, options.demand, seed)
            if options.alone:
                figures = alone(experiment, policy, ties or "fixed", seed)
            else:
                figures = await allocation(experiment, policy, ties or "fixed", seed)
        line = {"policy": name, "demand": options.demand, "seed": seed, "alone": options.alone, **figures}
        known[key_of(line)] = line
        keep(line, options.results)

    async with asyncio.TaskGroup() as tasks:
        for seed in seeds(options):
            for name in policies:
                if (name, options.demand, seed, options.alone) not in known:
                    tasks.create_task(one(name, seed))


def table(known, policies, options):
    how = ", the plugin alone" if options.alone else ""
    rows = Table(
        f"GPU allocation in %, {options.demand:.0%} of the GPUs asked for{how} (goal: 0.5 around the paper)",
        ["policy", "paper", "mean", "difference", "lowest", "highest", "runs", "pods", "s a run"],
    )
    for name in policies:
        wanted = [(name, options.demand, seed, options.alone) for seed in seeds(options)]
        lines = [known[key] for key in wanted]
        found = [line["allocation"] for line in lines]
        paper = PAPER.get(name.partition("/")[0]) if options.demand == PAPER_DEMAND else None
        against = (f"{paper:.1f}", f"{fmean(found) - paper:+.2f}") if paper else ("", "")
        rows.add(
            name,
            against[0],
            f"{fmean(found):.2f}",
            against[1],
            f"{min(found):.2f}",
            f"{max(found):.2f}",
            str(len(found)),
            fmean(line["pods"] for line in lines),
            fmean(line["seconds"] for line in lines),
        )
    return rows


def seeds(options):
    return range(options.first_seed, options.first_seed + options.seeds)


def key_of(line):
    """What makes a run the same as another."""
    return line["policy"], line["demand"], line["seed"], line.get("alone", False)


def read(path):
    """The runs of an earlier call."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def keep(line, path):
    text = json.dumps(line)
    click.echo(text)
    if path is not None:
        with path.open("a", encoding="utf-8") as results:
            results.write(text + "\n")
