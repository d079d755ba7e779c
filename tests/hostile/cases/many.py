"""Many objects, and objects that change all the time."""

import asyncio
from itertools import count

from tests.hostile.arena import pod
from tests.hostile.cases.pods import on_node
from tests.hostile.playing import Case

WAITING = 5_000
LARGE = {"resources": {"requests": {"cpu": "1000"}}}


async def flapping_beside_waiting_pods(arena):
    await arena.write_all(pod(f"waiting-{i}", container=LARGE) for i in range(WAITING))
    await arena.write(on_node("flapping"))
    for number in count():
        await arena.remove("Pod", f"flapping-{number - 1}")
        await arena.write(on_node(f"flapping-{number}"))


async def own_labels_flapping(arena):
    await arena.write_all(pod(f"waiting-{i}", container=LARGE) for i in range(WAITING // 5))
    for number in count():
        names = (f"waiting-{i}" for i in range(8))
        change = {"metadata": {"labels": {"flaps": str(number)}}}
        await asyncio.gather(*(arena.patch("Pod", name, change) for name in names))


async def same_name_again(arena):
    while True:
        await asyncio.gather(*(again(arena, f"again-{i}") for i in range(8)))


async def again(arena, name):
    await arena.write(pod(name))
    await arena.remove("Pod", name)


async def placed_and_gone(arena):
    for number in count():
        large = {"a": "b" * 200_000}
        await arena.write(on_node(f"gone-{number}", annotations=large))
        await arena.remove("Pod", f"gone-{number}")


async def budgets_and_victims(arena):
    expressions = [{"key": "app", "operator": "NotIn", "values": [f"v{i}" for i in range(200)]}]
    selector = {"matchExpressions": expressions}
    await arena.write_all(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{i}"},
            "spec": {"minAvailable": 1, "selector": selector},
        }
        for i in range(2_000)
    )
    whole = {"resources": {"requests": {"cpu": "1"}}}
    await arena.write({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    await arena.write_all(
        pod(f"victim-{i}", container=whole, nodeName=f"node-{i % arena.nodes}", labels={"app": "mine"})
        for i in range(min(arena.nodes * 31, 3_000))
    )
    high = {"priorityClassName": "high", "priority": 1000}
    for number in range(20):
        await arena.write(pod(f"high-{number}", container={"resources": {"requests": {"cpu": "32"}}}, **high))


async def distinct_labels(arena):
    for number in count():
        labels = {f"key-{number}-{i}": f"value-{number}" for i in range(100)}
        await arena.write(pod(f"labels-{number}", labels=labels))
        if number >= 50:
            await arena.remove("Pod", f"labels-{number - 50}")


CASES = (
    Case("W1", "user", f"{WAITING:,} pods wait, a placed pod comes and goes", flapping_beside_waiting_pods),
    Case("W2", "user", "1,000 pods wait, labels of eight flap", own_labels_flapping),
    Case("W3", "user", "pods of the same names created and deleted", same_name_again),
    Case("W4", "user", "placed pods of 200 kB come and go", placed_and_gone),
    Case(
        "W5", "user", "2,000 budgets over 3,000 victims, 20 pods preempt", budgets_and_victims, max_nodes=100
    ),
    Case("W6", "user", "pods with labels of their own come and go", distinct_labels),
)
