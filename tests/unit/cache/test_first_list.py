"""What a node costs at a start, before the first pod is tried: counted, for 5,000 of them are waited for."""

from berth.cache.cache import Cache
from berth.objects.node_decoding import decode_node
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node
from tests.benchmarks.workloads import node_bytes
from tests.hostile.work import calls

NODES = 200
CALLS_A_NODE = 200
"""163 are needed; 260 were, while each node looked for sums to forget and read its own amounts."""


def test_a_node_of_the_first_list_costs_few_calls():
    cache = Cache()
    nodes = [decode_node(data) for data in node_bytes(NODES)]

    def take_over():
        for node in nodes:
            cache.add_node(node)
        cache.update_snapshot(Snapshot())

    assert calls(take_over) < NODES * CALLS_A_NODE


def test_nodes_of_one_shape_share_their_amounts():
    cache = Cache()
    for data in node_bytes(2):
        cache.add_node(decode_node(data))
    first, second = cache.node_infos()

    assert first.allocatable is second.allocatable


def test_what_a_kubelet_writes_at_length_is_not_remembered():
    """Else 256 nodes would keep 256 times as much for ever."""
    cache = Cache()
    for name in ("n0", "n1"):
        cache.add_node(make_node(name, allocatable={"cpu": "0" * 10_000 + "1"}))
    first, second = cache.node_infos()

    assert {"cpu": 1000} == first.allocatable == second.allocatable
    assert first.allocatable is not second.allocatable
