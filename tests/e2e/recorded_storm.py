"""A recorded scheduler behind a proxy that fails requests and breaks watches, while pods come and go."""

import asyncio
from collections import Counter

from berth.client.errors import NotFoundError, RetryError
from tests.e2e.fault_rules import Fault
from tests.e2e.faults import LOOK_SECONDS, PATHS, batched, decided, faulty_cluster, node, pod

ROOM, WAVE = 10, 100
API, WATCH = r"/apis?/.*", r"/apis?/.*watch=true"


def rules():
    """A twentieth of all requests refused, cut or never answered; watches that break and expire."""
    requests = (
        {"fault": Fault.STATUS_BEFORE, "status": 409, "method": "(?!GET)"},
        {"fault": Fault.STATUS_AFTER, "status": 409, "method": "(?!GET)"},
        {"fault": Fault.STATUS_AFTER, "status": 500},
        {"fault": Fault.CUT_AFTER},
        {"fault": Fault.HANG_AFTER},
    )
    watches = (
        {"fault": Fault.CUT_WATCH, "rate": 0.4, "events": 200},
        {"fault": Fault.EXPIRE_WATCH, "rate": 0.2, "events": 200},
    )
    # Once for sure, whatever chance says.
    surely = [{**rule, "path": API, "times": 1, "skip": 15 * i} for i, rule in enumerate(requests, 1)]
    surely += [{**rule, "path": WATCH, "rate": 1, "times": 1} for rule in watches]
    return (
        *surely,
        *({**rule, "path": WATCH} for rule in watches),
        *({**rule, "path": API, "rate": 0.01} for rule in requests),
    )


async def recorded(folder, pods, seed=3):
    """Have so many pods scheduled, which leave in waves; the recording and the faults by name."""
    recordings, nodes = folder / "recordings", max(4, WAVE * 2 // ROOM)
    async with faulty_cluster(folder, room=ROOM, seed=seed) as cluster:
        await cluster.create(*(node(f"n{i}", pods=ROOM, zone=f"z{i % 3}") for i in range(nodes)))
        await cluster.proxy.rules(*rules())
        flags = ("--request-timeout=1s", f"--record-to={recordings}")
        await cluster.start_scheduler("one", *flags)
        for first in range(0, pods, WAVE):
            names = [f"p{i}" for i in range(first, min(first + WAVE, pods))]
            await cluster.create(*(sized(name, 10 + 7 * i % 80) for i, name in enumerate(names)))
            await cluster.until(lambda: all(map(decided, cluster.pods())), "all are decided on")
            # What is there for longer leaves, and makes room for the next.
            leaving = [each["metadata"]["name"] for each in cluster.pods()][: WAVE // 2]
            await delete(cluster, leaving)
        faults = Counter(entry["fault"] for entry in await cluster.proxy.ask("log") if entry["fault"])
        await cluster.proxy.rules()
        await cluster.end("one")
    (file,) = recordings.iterdir()
    return file, faults


def sized(name, cpu):
    """A pod that asks for so much of a node's CPU, which has 1000."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(cpu)
    return made


async def delete(cluster, names):
    """Delete these pods, and wait until they are gone."""
    for several in batched(names):
        await asyncio.gather(*(_delete(cluster, name) for name in several))


async def _delete(cluster, name):
    while True:
        try:
            await cluster.api.call("DELETE", f"{PATHS['Pod']}/{name}?gracePeriodSeconds=0")
        except NotFoundError:
            return
        except RetryError:
            await asyncio.sleep(LOOK_SECONDS)
        else:
            return
