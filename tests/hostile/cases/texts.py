"""Texts that a user chooses and that come back in messages, conditions and the log."""

import asyncio

from tests.hostile.arena import pod
from tests.hostile.playing import Case


async def long_claim_name(arena):
    for number in range(5):
        source = {"claimName": f"{number}" + "x" * 600_000}
        await arena.write(
            pod(f"long-claim-{number}", volumes=[{"name": "v", "persistentVolumeClaim": source}])
        )
    await look_at(arena, "long-claim-0")


async def forged_line(arena):
    forged = "x\nI0101 00:00:00.000000       1 leadership.py:1] \x1b[31mlost the lease"
    await arena.write(pod("forged", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": forged}}]))
    await look_at(arena, "forged")
    lines = arena.log.read_text(errors="replace").splitlines()
    found = sum(line.startswith("I0101 00:00:00.000000") for line in lines)
    arena.notes["log"] = f"{found} forged lines in the log"


async def long_messages_remembered(arena):
    number = 0
    while True:
        name = f"remembered-{number}"
        source = {"claimName": f"{number}" + "y" * 300_000}
        await arena.write(pod(name, volumes=[{"name": "v", "persistentVolumeClaim": source}]))
        if number >= 20:
            await arena.remove("Pod", f"remembered-{number - 20}")
        number += 1


async def long_pods_remembered(arena):
    number = 0
    while True:
        name = f"remembered-{number}"
        await arena.write(pod(name, annotations={"a": f"{number}" + "z" * 250_000}))
        if number >= 20:
            await arena.remove("Pod", f"remembered-{number - 20}")
        number += 1


async def many_reasons(arena):
    amounts = {f"example.com/{'n' * 50}-{i}": "1" for i in range(2_000)}
    await arena.write(pod("many-reasons", container={"resources": {"requests": amounts, "limits": amounts}}))
    await look_at(arena, "many-reasons")


async def look_at(arena, name):
    """Note how long the pod's condition came to be."""
    await asyncio.sleep(10)
    found = await arena.api.get(arena_pods(), "default", name)
    arena.notes["condition"] = f"the pod has {len(found):,} bytes"


def arena_pods():
    """Pods as the API serves them."""
    from tests.hostile.arena import PODS  # noqa: PLC0415 - one name

    return PODS


CASES = (
    Case("T1", "user", "five pods whose claim's name has 600,000 characters", long_claim_name),
    Case("T2", "user", "a claim's name with a line break and escapes", forged_line),
    Case("T3", "user", "pod after pod with a claim's name of 300 kB, deleted", long_messages_remembered),
    Case("T4", "user", "pod after pod with 250 kB of annotations, deleted", long_pods_remembered),
    Case("T5", "user", "a pod of 2,000 resources that no node has", many_reasons),
)
