"""Laws of the device table, for every policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import encode

from berth_gpu_share import POLICIES, GpuShare
from berth_gpu_share.contract import WHOLE, Demand
from berth_gpu_share.devices import DeviceTable, Share
from berth_gpu_share.fragmentation import FragmentationGradientDescent, Workload, fragments, fragments_after
from berth_gpu_share.ledger import Holding, Ledger
from berth_gpu_share.policies import BestFit, Packing, tightest
from berth_sdk import Call, PlacedPod, PodKey, PodStage, Reason
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.plugin import answering
from tests.unit.gpu_share.builders import gpu_node, gpu_pod
from tests.unit.gpu_share.tables import table_of

DEMANDS = st.one_of(
    st.builds(Demand, count=st.just(1), milli=st.integers(1, WHOLE), cpu=st.integers(0, 4000)),
    st.builds(Demand, count=st.integers(2, 8), milli=st.just(WHOLE), cpu=st.integers(0, 4000)),
)


class Attempts:
    """Drive a plugin as the scheduler would, one attempt at a time."""

    def __init__(self, policy, counts):
        self.plugin = GpuShare(policy)
        self.plugin.configure({}, "p")
        for index, count in enumerate(counts):
            self.plugin.node_upserted(index, decode_node(encode(gpu_node(f"n{index}", count))))
        self.nodes = [decode_node(encode(gpu_node(f"n{i}", count))) for i, count in enumerate(counts)]
        self.pods = {}

    def reserve(self, name, demand, index, attempt=1):
        """Try to reserve; True if it worked."""
        document = gpu_pod(name, demand.milli, count=demand.count, cpu=f"{demand.cpu}m")
        pod = decode_pod(encode(document))
        answering.set(Call("p", PodKey(pod.uid, attempt)))
        self.pods[name] = (pod, attempt)
        return not isinstance(self.plugin.reserve(pod, self.nodes[index]), Reason)

    def unreserve(self, name):
        pod, attempt = self.pods.pop(name)
        self.plugin.unreserve(PodKey(pod.uid, attempt), "")

    @property
    def left(self):
        return self.plugin.table.left.copy()


@pytest.mark.parametrize("policy", sorted(POLICIES))
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.integers(0, 7), DEMANDS, st.integers(0, 2), st.booleans())),
)
def test_no_device_is_overcommitted(policy, counts, steps):
    """Whatever is reserved and given back, no device has less than nothing or more than itself left."""
    attempts = Attempts(policy, counts)
    for number, demand, index, forward in steps:
        name = f"p{number}"
        if forward and name not in attempts.pods:
            attempts.reserve(name, demand, index % len(counts))
        elif not forward and name in attempts.pods:
            attempts.unreserve(name)
        present = np.arange(attempts.left.shape[1]) < np.array(counts)[:, None]
        assert ((attempts.left >= 0) & (attempts.left <= WHOLE))[present].all()
        assert (attempts.left[~present] == -1).all()

    for name in tuple(attempts.pods):
        attempts.unreserve(name)
    assert attempts.left.clip(min=0).sum(axis=1).tolist() == [WHOLE * count for count in counts]


@pytest.mark.parametrize("policy", sorted(POLICIES))
@given(demand=DEMANDS, count=st.integers(0, 9))
def test_reserve_agrees_with_filter(policy, demand, count):
    """A reservation works exactly where the filter lets the pod pass."""
    attempts = Attempts(policy, [count])
    room = bool(attempts.plugin.table.room(demand)[0])

    assert room == attempts.reserve("p", demand, 0)
    assert WHOLE * count - room * demand.total == attempts.left.clip(min=0).sum()


@given(demand=DEMANDS)
def test_reserve_is_idempotent(demand):
    """Repeating an attempt's Reserve takes nothing more."""
    attempts = Attempts("best-fit", [8])
    attempts.reserve("p", demand, 0)
    before = attempts.left

    assert attempts.reserve("p", demand, 0)
    assert (before == attempts.left).all()


def test_a_late_unreserve_frees_nothing_of_a_newer_attempt():
    """What the second attempt holds survives the first one's end."""
    attempts = Attempts("best-fit", [2])
    attempts.reserve("p", Demand(1, 400), 0, attempt=1)
    attempts.reserve("p", Demand(1, 400), 0, attempt=2)
    attempts.plugin.unreserve(PodKey(attempts.pods["p"][0].uid, 1), "n0")

    assert attempts.left[:, :2].tolist() == [[600, 1000]]


def test_the_next_attempt_takes_a_share_over():
    """A share confirmed by another attempt on the same node stays, and is that attempt's to give back."""
    share = Share((0,), 400, 1000)
    ledger = Ledger()

    assert ledger.put(Holding("u", 1, "n0", share)) == {"n0"}
    assert ledger.put(Holding("u", 2, "n0", share)) == set()
    assert ledger.on("n0") == [share]
    assert ledger.release("u", 1) == set()
    assert ledger.release("u", 2) == {"n0"}


@given(
    count=st.integers(0, 9),
    shares=st.lists(st.tuples(st.integers(0, 9), st.integers(1, WHOLE), st.integers(0, 9000)), max_size=12),
)
def test_a_charged_row_sums_its_devices(count, shares):
    """What a row says of all devices together is what its devices say one by one."""
    table = DeviceTable()
    taken = [Share((device,), milli, cpu) for device, milli, cpu in shares]
    table.put(0, decode_node(encode(gpu_node("n0", count))), taken)
    left = table.left[0, :count]

    assert table.free[0] == left.clip(min=0).sum()
    assert table.largest[0] == left.max(initial=0)
    assert table.untouched[0] == np.count_nonzero(left == WHOLE)
    assert table.cpu_left[0] == 64_000 - sum(cpu for _, _, cpu in shares)


def placed(document, node_name, stage=PodStage.PLACED, attempt=0):
    pod = decode_pod(encode(document))
    return PlacedPod(pod, pod.uid, node_name, stage, attempt)


def test_restart_rebuilds_from_annotations():
    """Placed pods count on the devices written to them, whichever comes first, node or pod."""
    plugin = GpuShare()
    plugin.pod_upserted(placed(gpu_pod("a", 300, devices="1"), "n0"))
    plugin.node_upserted(0, decode_node(encode(gpu_node("n0", 4))))
    plugin.pod_upserted(placed(gpu_pod("b", count=2, devices="0,3"), "n0"))

    assert plugin.table.left[:, :4].tolist() == [[0, 700, 1000, 0]]
    plugin.pod_removed(placed(gpu_pod("b", count=2, devices="0,3"), "n0"))
    assert plugin.table.left[:, :4].tolist() == [[1000, 700, 1000, 1000]]


def test_an_assumed_pod_keeps_its_reservation():
    """The state's word for an attempt moves it to no other device, nor does a new transfer."""
    attempts = Attempts("best-fit", [2])
    attempts.reserve("big", Demand(1, 900), 0)
    attempts.reserve("p", Demand(1, 400), 0)
    attempts.unreserve("big")
    assumed = placed(gpu_pod("p", 400), "n0", PodStage.ASSUMED, attempt=1)
    attempts.plugin.pod_upserted(assumed)
    assert attempts.left[0, :2].tolist() == [1000, 600]

    attempts.plugin.state_reset(epoch_changed=False)
    attempts.plugin.node_upserted(0, attempts.nodes[0])
    attempts.plugin.pod_upserted(assumed)
    attempts.plugin.state_settled()
    assert attempts.left[0, :2].tolist() == [1000, 600]


def test_a_new_epoch_voids_reservations():
    """Another scheduler's attempts are not kept."""
    attempts = Attempts("best-fit", [2])
    attempts.reserve("p", Demand(1, 400), 0)
    attempts.plugin.state_reset(epoch_changed=True)
    attempts.plugin.node_upserted(0, attempts.nodes[0])
    attempts.plugin.state_settled()

    assert attempts.left[0, :2].tolist() == [1000, 1000]


def test_a_pod_placed_by_others_counts_somewhere():
    """A placed pod without devices is counted, even where there is no room for it."""
    plugin = GpuShare()
    plugin.node_upserted(0, decode_node(encode(gpu_node("n0", 1))))
    plugin.pod_upserted(placed(gpu_pod("a", 800), "n0"))
    plugin.pod_upserted(placed(gpu_pod("b", 800), "n0"))

    assert plugin.table.left[0, 0] == -600
    assert not plugin.table.room(Demand(1, 1))[0]


@given(rows=st.lists(st.lists(st.integers(0, WHOLE), min_size=1, max_size=9), min_size=1), data=st.data())
def test_removed_rows_leave_the_others(rows, data):
    """Dropping a node moves the last row into its place and changes no other."""
    table = table_of(*rows)
    index = data.draw(st.integers(0, len(rows) - 1))
    table.remove(index, len(rows) - 1)
    expected = [f"n{i}" for i in range(len(rows))]
    expected[index] = expected[-1]
    expected.pop()

    assert expected == table.names
    assert {name: i for i, name in enumerate(expected)} == table.index
    for row, name in zip(table.left.tolist(), expected, strict=True):
        assert rows[int(name[1:])] == [left for left in row if left >= 0]


@pytest.mark.parametrize(
    ("left", "demand", "devices"),
    [
        pytest.param([500, 300, 1000], Demand(1, 300), (1,), id="the fullest that fits"),
        pytest.param([500, 300, 1000], Demand(1, 600), (2,), id="an unused one if it must be"),
        pytest.param([500, 1000, 1000], Demand(2, 1000), (1, 2), id="whole ones"),
        pytest.param([500, 1000], Demand(2, 1000), None, id="too few whole ones"),
        pytest.param([100, -1], Demand(1, 200), None, id="no room"),
    ],
)
def test_tightest(left, demand, devices):
    """A share takes the fullest device that has room; whole GPUs are unused ones."""
    assert devices == tightest(demand, np.array(left))


def test_best_fit_prefers_what_keeps_least():
    """Of two nodes with room the one with less left scores higher."""
    points = BestFit().score(Demand(1, 200), table_of([1000, 1000], [300, 1000], [200])).points

    assert points[0] < points[1] < points[2]


def test_packing_prefers_shared_then_used_then_empty():
    """Shared devices come before unused ones, and empty nodes come last."""
    points = Packing().score(Demand(1, 200), table_of([1000, 1000], [100, 1000], [300, 1000])).points

    assert points.tolist() == [31, 49, 97]


def usual(*demands):
    policy = FragmentationGradientDescent()
    for demand in demands:
        policy.saw(demand)
    return policy


def test_fragments():
    """Devices that the usual pods can't use are fragments; a node they can't use at all is all fragment."""
    workload = usual(Demand(1, 500), Demand(2, 1000)).workload
    left = np.array([[400, 1000, 1000], [400, 1000, -1]])
    allowed = np.ones((2, 2), bool)

    assert fragments(left, np.array([1, 1]), allowed, workload).tolist() == [400.0, (400 + 1400) / 2]


@given(
    rows=st.lists(st.lists(st.integers(0, WHOLE), min_size=3, max_size=3), min_size=1),
    milli=st.integers(1, 999),
)
def test_fragments_after(rows, milli):
    """The quick answer for every device is the answer for each of them alone."""
    workload = usual(Demand(1, 500), Demand(2, 1000), Demand(1, 120, cpu=5)).workload
    left, cpu = np.array(rows), np.arange(len(rows))
    allowed = np.ones((len(rows), len(workload.milli)), bool)
    quick = fragments_after(left, cpu, allowed, workload, milli)

    for device in range(3):
        after = left.copy()
        after[:, device] -= milli
        room = after[:, device] >= 0
        assert quick[room, device] == pytest.approx(fragments(after, cpu, allowed, workload)[room])


def test_workload_is_what_comes_most():
    """The usual pods are the most frequent ones, up to 95 % of all."""
    demands = [Demand(1, 100)] * 60 + [Demand(1, 200)] * 36 + [Demand(1, i) for i in range(301, 305)]
    workload = Workload.of(usual(*demands).seen)

    assert workload.milli.tolist() == [100, 200]
    assert workload.share.tolist() == [0.625, 0.375]


def test_fgd_avoids_breaking_a_free_gpu():
    """Where whole GPUs usually come, a share goes to a device that is broken already."""
    policy = usual(*[Demand(1, 1000)] * 9, Demand(1, 300))
    table = table_of([1000, 1000], [500, 1000])
    points = policy.score(Demand(1, 300), table).points

    assert points[0] < points[1]
    assert policy.pick(Demand(1, 300), table, 1) == (0,)


@given(
    rows=st.lists(st.lists(st.integers(0, WHOLE), min_size=1, max_size=4), min_size=2, max_size=4),
    shares=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, WHOLE)), max_size=4),
    demand=DEMANDS,
)
def test_fgd_remembers_rightly(rows, shares, demand):
    """Scores kept from earlier cycles equal scores computed from nothing, after any change of rows."""
    workload = [Demand(1, 500), Demand(1, 1000), Demand(2, 1000), Demand(1, 700)]
    table, keeping = table_of(*rows), usual(*workload)
    for index, device, milli in shares:
        keeping.score(demand, table)
        table.charge(index % len(rows), [Share((device,), milli, 100)])

    room = table.room(demand)
    afresh = usual(*workload).score(demand, table).points
    assert afresh[room].tolist() == keeping.score(demand, table).points[room].tolist()
