"""Small objects that a user changes without pause: a second round of attacks on a real API server."""

import asyncio
from itertools import count, islice

from tests.hostile.arena import pod
from tests.hostile.cases.pods import on_node
from tests.hostile.playing import Case

MANY = 2_000
AT_ONCE = 16
UNSCHEDULABLE = {"nodeSelector": {"no": "node"}}
LARGE = {"resources": {"requests": {"cpu": "1000"}}}
GROUPS = "--feature-gates=GenericWorkload=true"


def names(prefix, number):
    return [f"{prefix}-{i}" for i in range(number)]


async def together(calls):
    """Await this many at a time."""
    waiting = iter(calls)
    while several := list(islice(waiting, AT_ONCE)):
        await asyncio.gather(*several)


async def gates_come_and_go(arena):
    """Gated pods whose gates are removed, which no node suits, and which are made anew."""
    gates = [{"name": f"example.com/g{i}"} for i in range(3)]
    for number in count():
        made = names(f"gated-{number}", 200)
        await arena.write_all(pod(name, schedulingGates=gates, **UNSCHEDULABLE) for name in made)
        for left in (gates[1:], gates[2:], []):
            change = {"spec": {"schedulingGates": left}}
            await together(arena.patch("Pod", name, change) for name in made)
        await together(arena.remove("Pod", name) for name in made)


async def nominations(arena):
    """Waiting pods say of themselves that they are nominated, now for one node, now for another."""
    made = names("nominated", MANY)
    await arena.write_all(pod(name, **UNSCHEDULABLE) for name in made)
    for number in count():
        await together(
            arena.patch(
                "Pod", name, {"status": {"nominatedNodeName": f"node-{(i + number) % arena.nodes}"}}, "status"
            )
            for i, name in enumerate(made)
        )


async def low_priorities(arena):
    """A flood of pods of the least priority, which come and go."""
    await arena.write({"kind": "PriorityClass", "metadata": {"name": "least"}, "value": -2_000_000_000})
    low = {"priorityClassName": "least", "priority": -2_000_000_000}
    for number in count():
        await arena.write_all((pod(f"low-{number}-{i}", container=LARGE, **low) for i in range(200)), AT_ONCE)
        if number >= MANY // 200:
            await together(arena.remove("Pod", f"low-{number - MANY // 200}-{i}") for i in range(200))


async def ephemeral_volumes(arena):
    """Pods of sixteen ephemeral volumes; the claims of some of them come and go."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}} for i in range(16)]
    await arena.write_all(pod(name, volumes=volumes) for name in names("ephemeral", MANY // 2))
    claims = [f"ephemeral-{i}-v{j}" for i in range(16) for j in range(16)]
    while True:
        await arena.write_all(
            {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec} for name in claims
        )
        await together(arena.remove("PersistentVolumeClaim", name) for name in claims)


async def resizes(arena):
    """Placed pods that are resized without pause, beside pods that wait for room."""
    await arena.write_all(pod(name, container=LARGE) for name in names("waiting", MANY // 4))
    made = names("resized", 200)
    await arena.write_all(on_node(name) for name in made)
    for number in count():
        amounts = {"cpu": f"{10 + number % 10}m", "memory": "16Mi"}
        change = {"spec": {"containers": [{"name": "main", "resources": {"requests": amounts}}]}}
        await together(arena.patch("Pod", name, change, "resize", strategic=True) for name in made)


async def large_metadata(arena):
    """Placed pods of 200 kB of annotations, a thousand labels and finalizers, all of which change."""
    made = names("metadata", 30)
    await arena.write_all(on_node(name) for name in made)
    try:
        for number in count():
            change = {
                "annotations": {"a": f"{number % 10}" * 200_000},
                "labels": {f"k{i}": f"v{number}" for i in range(1_000)},
                "finalizers": [f"example.com/f{number}-{i}" for i in range(500)],
            }
            await together(arena.patch("Pod", name, {"metadata": change}) for name in made)
    finally:
        await together(arena.patch("Pod", name, {"metadata": {"finalizers": None}}) for name in made)


async def labels_of_namespaces(arena):
    """Namespaces whose labels change, and pods whose terms select namespaces."""
    spaces = names("space", 50)
    await arena.write_all({"kind": "Namespace", "metadata": {"name": name}} for name in spaces)
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {},
        "namespaceSelector": {"matchExpressions": [{"key": "k0", "operator": "Exists"}]},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await arena.write_all(pod(name, affinity=affinity) for name in names("selecting", 200))
    await arena.write_all(on_node(name, affinity=affinity) for name in names("selected", 50))
    for number in count():
        labels = {f"k{i}": f"v{number}" for i in range(number % 2, 500)}
        change = {"metadata": {"labels": {**labels, "k0": labels.get("k0")}}}
        await together(arena.patch("Namespace", name, change) for name in spaces)


async def members_of_groups(arena):
    """Groups of which members come and go, never enough of them."""
    groups = names("group", 100)
    gang = {"schedulingPolicy": {"gang": {"minCount": 10}}}
    await arena.write_all({"kind": "PodGroup", "metadata": {"name": name}, "spec": gang} for name in groups)
    for number in count():
        made = [(f"member-{number}-{i}", groups[i % len(groups)]) for i in range(400)]
        await arena.write_all(pod(name, schedulingGroup={"podGroupName": of}) for name, of in made)
        if number:
            await together(arena.remove("Pod", f"member-{number - 1}-{i}") for i in range(400))


async def one_group(arena, least):
    """A group of which no pod finds a node; answers the fields of its pods."""
    gang = {"schedulingPolicy": {"gang": {"minCount": least}}}
    await arena.write({"kind": "PodGroup", "metadata": {"name": "one"}, "spec": gang})
    return {"schedulingGroup": {"podGroupName": "one"}, **UNSCHEDULABLE}


async def members_of_a_waiting_group(arena):
    """A group of which one pod is enough: others come to it, one after the other, and go."""
    of_it = await one_group(arena, 1)
    for number in count():
        made = names(f"joining-{number}", MANY)
        await arena.write_all(pod(name, **of_it) for name in made)
        await together(arena.remove("Pod", name) for name in made)


async def gates_of_a_group(arena):
    """A group of gated pods, whose gates go one after the other."""
    of_it = await one_group(arena, 1)
    gates = {"schedulingGates": [{"name": "example.com/g"}]}
    for number in count():
        made = names(f"held-{number}", MANY // 4)
        await arena.write_all(pod(name, **gates, **of_it) for name in made)
        await together(arena.patch("Pod", name, {"spec": {"schedulingGates": []}}) for name in made)
        await together(arena.remove("Pod", name) for name in made)


async def counts_of_a_group(arena):
    """A group that needs one pod more, and one less, without pause, beside its pods."""
    least = MANY // 4
    of_it = await one_group(arena, least)
    await arena.write_all(pod(name, **of_it) for name in names("counted", least))
    for number in count():
        gang = {"schedulingPolicy": {"gang": {"minCount": least + number % 2}}}
        await arena.patch("PodGroup", "one", {"spec": gang})


async def values_to_spread_over(arena):
    """Pods that are spread by a label of which each has a value of its own, and which come and go."""
    for number in count():
        made = [f"spread-{number}-{i}" for i in range(200)]
        constraint = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "spread"}},
            "matchLabelKeys": ["own"],
        }
        await arena.write_all(
            pod(name, labels={"app": "spread", "own": name}, topologySpreadConstraints=[constraint])
            for name in made
        )
        await together(arena.remove("Pod", name) for name in made)


async def claims_of_others(arena):
    """A thousand pods that name one claim of a volume and one of devices, which come and go."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "theirs"}}
    device = {"name": "c", "resourceClaimName": "theirs"}
    await arena.write_all(
        pod(name, volumes=[volume], resourceClaims=[device]) for name in names("naming", MANY // 2)
    )
    request = {"name": "r", "exactly": {"deviceClassName": "none"}}
    spec = {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}}}
    while True:
        await arena.write(
            {"kind": "PersistentVolumeClaim", "metadata": {"name": "theirs"}, "spec": {**spec, **STATIC}}
        )
        devices = {"devices": {"requests": [request]}}
        await arena.write({"kind": "ResourceClaim", "metadata": {"name": "theirs"}, "spec": devices})
        await arena.remove("ResourceClaim", "theirs")
        await arena.remove("PersistentVolumeClaim", "theirs")


STATIC = {"storageClassName": ""}


async def preemptions(arena):
    """Pods of high priority that evict those of low priority, which are made anew, as controllers do."""
    await arena.write({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1_000})
    high = {"priorityClassName": "high", "priority": 1_000}
    twenty = {"resources": {"requests": {"cpu": "20"}}}
    for number in count():
        low, evicting = names(f"low-{number}", 20), names(f"high-{number}", 20)
        on = [{"kubernetes.io/hostname": f"node-{i}"} for i in range(20)]
        await arena.write_all(
            pod(name, container=twenty, nodeSelector=where) for name, where in zip(low, on, strict=True)
        )
        await arena.write_all(
            pod(name, container=twenty, nodeSelector=where, **high)
            for name, where in zip(evicting, on, strict=True)
        )
        await asyncio.sleep(0.5)
        await together(arena.remove("Pod", name) for name in (*low, *evicting))


async def conditions_change(arena):
    """An owner of waiting pods writes conditions of theirs without pause."""
    made = names("told", 300)
    await arena.write_all(pod(name, container=LARGE) for name in made)
    for number in count():
        said = {"type": "example.com/told", "status": "True", "message": f"{number}" * 200}
        change = {"status": {"conditions": [said]}}
        await together(arena.patch("Pod", name, change, "status", strategic=True) for name in made)


def alone_of(name):
    """A resource that no node has, and no other pod asks for."""
    amounts = {f"example.com/{name}": "1"}
    return {"requests": amounts, "limits": amounts}


async def events(arena):
    """Events about pods that wait, and pods that fail for a reason of their own, so that each has events."""
    await arena.write_all(
        pod(name, container={"resources": alone_of(name)}) for name in names("failing", MANY // 2)
    )
    for number in count():
        about = {"kind": "Pod", "namespace": "default", "name": f"failing-{number % 1_000}"}
        await arena.write_all(
            {
                "kind": "Event",
                "metadata": {"name": f"event-{number}-{i}"},
                "involvedObject": about,
                "reason": "FailedScheduling",
                "message": "x" * 1_000,
            }
            for i in range(100)
        )


async def with_groups(_folder):
    """A scheduler that knows pod groups."""

    async def nothing_to_stop():
        pass

    return "", (GROUPS,), nothing_to_stop


CASES = (
    Case("A1", "user", "200 gated pods whose gates go, made anew without end", gates_come_and_go),
    Case("A2", "writer of pods/status", f"{MANY:,} waiting pods that nominate themselves", nominations),
    Case("A3", "user", f"{MANY:,} waiting pods of the least priority, which come and go", low_priorities),
    Case("A4", "user", "1,000 pods of 16 ephemeral volumes whose claims come and go", ephemeral_volumes),
    Case("A5", "user", "200 placed pods that are resized, 500 wait", resizes),
    Case("A6", "user", "placed pods whose annotations, labels and finalizers change", large_metadata),
    Case("A7", "writer of namespaces", "50 namespaces whose labels change, 200 terms", labels_of_namespaces),
    Case("A8", "user", "100 groups whose members come and go", members_of_groups, prepare=with_groups),
    Case("A9", "user", "pods spread by a label of their own each, made anew", values_to_spread_over),
    Case("A10", "user", "1,000 pods that name one claim, which comes and goes", claims_of_others),
    Case("A11", "user", "pods that evict pods which are made anew, on 20 nodes", preemptions),
    Case("A12", "writer of pods/status", "conditions of 300 waiting pods change", conditions_change),
    Case("A13", "user", "events without end, 1,000 pods that fail for a reason each", events),
    Case(
        "A14",
        "user",
        f"a group that waits, to which {MANY:,} pods come, and go",
        members_of_a_waiting_group,
        prepare=with_groups,
    ),
    Case("A15", "user", "500 gates of one group's pods that go", gates_of_a_group, prepare=with_groups),
    Case("A16", "user", "a group whose minCount changes, 500 pods", counts_of_a_group, prepare=with_groups),
)
