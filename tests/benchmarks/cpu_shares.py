"""Where a pod's CPU goes, by package: decisions on new classes, and a whole scheduler at work.

Shares hold on a machine that does other work, too; milliseconds do not. The first table comes from cProfile,
which makes small functions look dearer than they are; the others from the scheduler's own
/debug/pprof/profile, which makes calls that give up the interpreter's lock look dearer (I/O, numpy on many
rows, and with them plugins).
"""

import asyncio
import cProfile
import pstats
import re
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import aiohttp

from berth.client.api import Api
from berth.demo.submission import create_all
from tests.benchmarks.end_to_end import NODES, READY_SECONDS, Cluster, alike
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import Core, described, pod_template, read_pod

WARM, DECISIONS = 300, 300
PODS = 12_000
PROFILE_SECONDS = 4
LINE = re.compile(r"\s*[\d.]+%\s+([\d.]+)%\s+(.*):(\d+) ")


def run(options):
    """A table of new classes, and one for each kind of pods whose name matches."""
    profile = asyncio.run(decided(options.nodes or NODES))
    table = Table(
        f"a new class on {options.nodes or NODES:,} nodes: Python calls and time, by package",
        ["package", "calls a decision", "share of the time"],
    )
    calls, seconds = by_package(profile)
    for package, spent in seconds.most_common():
        if spent > 0.005 * seconds.total():
            table.add(package, calls[package] / DECISIONS, f"{spent / seconds.total():.0%}")
    table.add("all", calls.total() / DECISIONS, "")
    table.add(*dearest(profile))
    table.show()
    for work in described()["throughput"]:
        if (work["classes"] > 1 or "equal" in work["name"]) and options.match in work["name"]:
            at_work(work, options.pods or PODS)


async def decided(nodes):
    """The profile of decisions, each on a pod of a class of its own."""
    core, template, profile = Core.of(nodes, 0, 0), pod_template(None), cProfile.Profile()
    for number in range(WARM + DECISIONS):
        pod = read_pod(template.bytes(number + 1, number))
        core.cache.update_snapshot(core.snapshot)
        if number >= WARM:
            profile.enable()
        decision = await core.decide(pod)
        profile.disable()
        core.cache.assume_pod(pod.placed_on(decision.node_name))
    return profile


def by_package(profile):
    """Calls and seconds of each package; what C functions took counts where they were called."""
    calls, seconds = Counter(), Counter()
    for (file, _, _), (_, count, own, _, callers) in pstats.Stats(profile).stats.items():
        if file != "~":
            calls[package_of(file)] += count
            seconds[package_of(file)] += own
            continue
        for (caller, _, _), (_, _, of_caller, _) in callers.items():
            seconds[package_of(caller)] += of_caller
    return calls, seconds


def dearest(profile):
    """The row of the function that takes the most time itself, of so many."""
    stats = pstats.Stats(profile).stats
    (file, _, name), most = max(((at, row[2]) for at, row in stats.items()), key=lambda each: each[1])
    share = most / sum(row[2] for row in stats.values())
    return f"the most by one of {len(stats)} functions: {package_of(file)} {name}", "", f"{share:.1%}"


def package_of(file):
    """Such as `berth.plugins` or `asyncio`."""
    parts = Path(file).with_suffix("").parts
    if "berth" in parts:
        after = parts[len(parts) - 1 - parts[::-1].index("berth") :]
        return ".".join(after[:2])
    for root in ("site-packages", "lib"):
        if root in parts:
            rest = [part for part in parts[parts.index(root) + 1 :] if not part.startswith("python3")]
            return rest[0] if rest else root
    return parts[-1] if parts else file


def at_work(work, pods):
    """The table of a scheduler that places these pods."""
    shares = asyncio.run(sampled(partial(alike, work, pods)))
    table = Table(f"a scheduler at work: {work['name']}", ["package", "share of its thread"])
    for package, share in shares.most_common():
        if share >= 1:
            table.add(package, f"{share:.0f} %")
    table.show()


async def sampled(objects):
    """Percent of the scheduling thread's time by package, while it places pods on the sandbox."""
    around, pods = objects()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        cluster = await Cluster.up(stack, folder)
        await create_all(Api(cluster.transport), [*around, *pods])
        _, port = await cluster.scheduler(("berth", "scheduler"), open_paths="/*")
        return await profiled(port)


async def profiled(port):
    """The scheduler's own profile of a few seconds, once it places pods."""
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:
        async with asyncio.timeout(READY_SECONDS):
            while not await placing(session):  # noqa: ASYNC110 - another process has no event
                await asyncio.sleep(0.05)
        async with session.get("/debug/pprof/profile", params={"seconds": PROFILE_SECONDS}) as answer:
            text = await answer.text()
    shares = Counter()
    for line in text.splitlines():
        if found := LINE.match(line):
            shares[package_of(found[2])] += float(found[1])
    return shares


async def placing(session):
    """Whether the scheduler has bound a pod."""
    try:
        async with session.get("/metrics") as answer:
            return 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}' in (
                await answer.text()
            )
    except aiohttp.ClientError:
        return False
