"""Equal pods are one question, and the answer is none the worse for it (core 4.16).

Berth remembers answers otherwise than upstream does, and for pods that upstream cannot sign; what can be
seen of it is that nothing can be seen.
"""

import pytest

from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import TopologySpreadConstraint
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE

SPREAD = TopologySpreadConstraint(1, "kubernetes.io/hostname", "DoNotSchedule", LabelSelector({"app": "a"}))


async def placed(batching, **pod):
    """Where forty equal pods end up while the cluster changes under them."""
    cluster = Cluster(gates={"OpportunisticBatching": batching})
    for number in range(12):
        name = f"n{number}"
        cluster.add_node(name, cpu=str(2 + number % 4), labels={"kubernetes.io/hostname": name})
    for number in range(40):
        cluster.add_pod(f"p{number:02}", labels={"app": "a"}, cpu="500m", **pod)
        if number % 7 == 3:
            cluster.add_pod(f"other{number}", node_name=f"n{number % 12}", cpu="1")
        if number % 11 == 5:
            cluster.change_node(f"n{number % 5}", spec={"unschedulable": number % 2 == 0})
        await cluster.run()
    return {name: (cluster.bound.get(name), record.score) for name, record in _records(cluster)}


def _records(cluster):
    return [(record.pod.name, record) for record in cluster.records]


async def test_4_16_2_attempts_are_counted_by_what_they_could_use():
    """The first two of a kind find nothing (answers are kept from the second on), their equals do."""
    cluster = Cluster()
    for number in range(3):
        cluster.add_node(f"n{number}")
    for number in range(5):
        cluster.add_pod(f"p{number}")
    await cluster.run()
    counted = [
        cluster.metric("batch_attempts_total", profile=PROFILE, result=result)
        for result in ("no_hint", "hint_used")
    ]

    assert [2, 3] == counted


@pytest.mark.parametrize("pod", [{}, {"topology_spread_constraints": (SPREAD,)}], ids=["plain", "spread"])
async def test_4_16_1_remembered_answers_decide_as_fresh_ones_do(pod):
    """The same nodes with the same scores, with the gate and without it."""
    assert await placed(batching=True, **pod) == await placed(batching=False, **pod)
