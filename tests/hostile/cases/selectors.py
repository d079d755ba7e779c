"""Selectors of pods: affinity, spreading, and what they are compared with."""

from tests.hostile.arena import pod
from tests.hostile.cases.pods import on_node
from tests.hostile.playing import Case

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def away(terms):
    """Anti-affinity of these terms."""
    return {"podAntiAffinity": {REQUIRED: terms}}


def values(count, of="value"):
    """So many label values."""
    return [f"{of}-{i}" for i in range(count)]


async def many_terms(arena):
    for number in range(2):
        terms = [
            {
                "topologyKey": HOST,
                "labelSelector": {"matchLabels": {"app": "mine", f"term-{number}-{i}": "x"}},
            }
            for i in range(6_000)
        ]
        labels = {"app": "mine", **{f"term-{number}-{i}": "x" for i in range(6_000)}}
        await arena.write(pod(f"many-terms-{number}", labels=labels, affinity=away(terms)))


async def many_near(arena):
    terms = [
        {"topologyKey": HOST, "labelSelector": {"matchLabels": {f"term-{i}": "x"}}} for i in range(12_000)
    ]
    await arena.write(pod("many-near", affinity={"podAffinity": {REQUIRED: terms}}))


async def many_that_mean_everybody(arena):
    """As many as an API server takes as JSON, a third of what it takes as protobuf."""
    absent = ({"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]} for i in range(9_000))
    terms = [{"topologyKey": HOST, "namespaceSelector": {}, "labelSelector": each} for each in absent]
    for number in range(4):
        await arena.write(on_node(f"keeps-away-{number}", affinity=away(terms)))


async def many_soft_constraints(arena):
    wanted = [
        {
            "maxSkew": 1,
            "topologyKey": f"level-{i}",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {},
        }
        for i in range(12_000)
    ]
    await arena.write(pod("many-constraints", topologySpreadConstraints=wanted))


async def many_values_held(arena):
    within = {"key": "app", "operator": "In", "values": values(60_000)}
    term = {"topologyKey": HOST, "labelSelector": {"matchExpressions": [within]}}
    await arena.write(on_node("many-values", affinity=away([term])))


async def many_values_asked(arena):
    for number in range(3):
        within = {"key": "app", "operator": "In", "values": values(60_000, f"v{number}")}
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [within]},
        }
        await arena.write(pod(f"many-values-{number}", topologySpreadConstraints=[constraint]))


async def distinct_large_selectors(arena):
    number = 0
    while True:
        values_here = [f"{number:x}-" + "v" * 50 + str(i) for i in range(1_000)]
        outside = {"key": "app", "operator": "NotIn", "values": values_here}
        constraint = {
            "maxSkew": 5,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [outside]},
        }
        name = f"distinct-{number}"
        await arena.write(pod(name, topologySpreadConstraints=[constraint]))
        number += 1
        if number > 50:
            await arena.remove("Pod", f"distinct-{number - 50}")


async def terms_and_values(arena):
    first = {"key": "app", "operator": "In", "values": values(20_000)}
    terms = [{"topologyKey": HOST, "labelSelector": {"matchExpressions": [first]}}]
    for i in range(1_500):
        absent = {"key": f"t{i}", "operator": "Exists"}
        terms.append({"topologyKey": HOST, "labelSelector": {"matchExpressions": [absent]}})
    await arena.write(pod("terms-and-values", affinity={"podAffinity": {REQUIRED: terms}}))


async def affinity_keys(arena):
    for number in range(3):
        terms = [
            {"matchExpressions": [{"key": f"k{number}-{i}", "operator": "NotIn", "values": ["a"]}]}
            for i in range(15_000)
        ]
        near = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
        await arena.write(pod(f"affinity-keys-{number}", affinity=near))


async def requirements_and_classes(arena):
    await arena.write_all(on_node(f"class-{i}", labels={"app": f"a{i}"}) for i in range(1_000))
    absent = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(15_000)]
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": absent},
    }
    await arena.write(pod("requirements", topologySpreadConstraints=[constraint]))


CASES = (
    Case("H4", "user", "two pods of 6,000 terms that match themselves", many_terms),
    Case("K1", "user", "a pod of 12,000 required affinity terms", many_near),
    Case("K2", "user", "four placed pods of 9,000 terms each that mean everybody", many_that_mean_everybody),
    Case("S7", "user", "a pod of 12,000 soft spread constraints", many_soft_constraints),
    Case("S1", "user", "a placed pod, one term of 60,000 values", many_values_held),
    Case("S2", "user", "three pods, one constraint of 60,000 values", many_values_asked),
    Case("S3", "user", "pod after pod with a selector of 55 kB, each deleted", distinct_large_selectors),
    Case("S4", "user", "a pod of 1,500 terms, the first of 20,000 values", terms_and_values),
    Case("S5", "user", "three pods of 15,000 node affinity terms, each a key", affinity_keys),
    Case("S6", "user", "a constraint of 15,000 requirements, 1,000 small pods", requirements_and_classes),
)
