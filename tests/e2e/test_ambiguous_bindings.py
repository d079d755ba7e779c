"""Bindings whose answers are lost or wrong, and watches that are late: no node is ever given twice.

docs/decisions/0005-ambiguous-bindings.md
"""

from collections import Counter

import pytest

from tests.e2e.fault_rules import Fault
from tests.e2e.faults import BINDING, bound_names, decided, faulty_cluster, node, pod

pytestmark = pytest.mark.e2e

NODES, PODS = 200, 230
CREATED = 201

LOST_ANSWERS = (Fault.CUT_AFTER, Fault.CUT_BEFORE, Fault.STATUS_AFTER, Fault.STATUS_BEFORE)


def on_bindings(fault, rate, **more):
    return {"fault": fault, "method": "POST", "path": BINDING, "rate": rate, **more}


async def test_no_node_is_overcommitted(tmp_path):
    """With a quarter of all bindings answered wrongly or not at all, each node gets one pod and no more."""
    async with faulty_cluster(tmp_path, room=1) as cluster:
        await cluster.create(*(node(f"n{i}") for i in range(NODES)))
        # Each rule sees what those before it let pass: together they strike a quarter.
        quarter = [on_bindings(fault, 0.25 / (4 - 0.25 * i)) for i, fault in enumerate(LOST_ANSWERS)]
        late = {"fault": Fault.SLOW_WATCH, "path": r"/api/v1/pods\?.*watch=true", "seconds": 2.0}
        await cluster.proxy.rules(*quarter, late)
        await cluster.start_scheduler("one")
        await cluster.create(*(pod(f"p{i}") for i in range(PODS)))
        await cluster.until(lambda: len(cluster.witness.bound) >= NODES, "every node has its pod")
        await cluster.until(lambda: all(map(decided, cluster.pods())), "the others say why they wait")

        bindings = await cluster.proxy.bindings()
        assert [] == cluster.witness.wrongs
        assert NODES == len(bound_names(cluster.pods()))
        landed = Counter(e["path"] for e in bindings if e["forwarded"] and e["status"] == CREATED)
        assert NODES == len(landed) == landed.total()
        assert {fault.value for fault in LOST_ANSWERS} <= {e["fault"] for e in bindings}
        assert sum(e["fault"] != "" for e in bindings) > NODES / 8
