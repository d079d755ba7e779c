"""What the policies of the paper score, against figures worked out by hand."""

from collections import Counter

import numpy as np
import pytest

from berth_gpu_share.contract import WHOLE, Demand
from berth_gpu_share.devices import Share
from berth_gpu_share.fragmentation import FragmentationGradientDescent, Workload, fragments
from berth_gpu_share.policies import BestFit, Clustering, DotProduct, Packing, Random, in_order
from berth_sdk import Normalization, Scores
from tests.unit.gpu_share.tables import table_of

CPU_ALONE = Demand(0, 0, cpu=32_000)


def test_best_fit_by_hand():
    """Half of what CPU is kept and half of what GPU is kept, of the largest node's, are missing to 1e6."""
    points = BestFit().score(Demand(1, 500, cpu=32_000), table_of([1000, 1000], [500])).points

    assert points.tolist() == [1e6 * (1 - 0.25 - 0.375), 1e6 * (1 - 0.25 - 0.0)]


def test_dot_product_by_hand():
    """Half of CPU left times CPU asked for, and of GPU left times GPU asked for, are missing to 100."""
    points = DotProduct().score(Demand(1, 1000, cpu=32_000), table_of([1000, 1000], [1000, 0])).points

    assert points.tolist() == [100 * (1 - (0.5 + 0.5) / 2), int(100 * (1 - (0.5 + 0.25) / 2))]


def kinds_of_pods():
    """Four nodes with 2 GPUs: only shares, shares and a whole GPU, nothing, and only whole GPUs."""
    table = table_of(*[[1000, 1000]] * 4)
    share, whole = Share((0,), 500, 0), Share((1,), WHOLE, 0)
    table.charge(0, [share])
    table.charge(1, [share, whole])
    table.charge(3, [whole])
    return table


@pytest.mark.parametrize(
    ("demand", "points"),
    [
        pytest.param(Demand(1, 200), [75 + 6, 50 + 18, 25 + 0, 0 + 12], id="a share"),
        pytest.param(Demand(1, WHOLE), [0 + 6, 50 + 18, 25 + 0, 75 + 12], id="one GPU"),
        pytest.param(Demand(2, WHOLE), [0 + 6, 0 + 18, 25 + 0, 0 + 12], id="two GPUs, a kind of its own"),
        pytest.param(CPU_ALONE, [0, 0, 0, 0], id="no GPU"),
    ],
)
def test_clustering_by_hand(demand, points):
    """Its own kind alone, its own kind among others, no pod, others: 25 apart, and the fuller the better."""
    assert points == Clustering().score(demand, kinds_of_pods()).points.tolist()


def test_packing_leaves_cpu_pods_to_others():
    """A pod without GPU scores the same everywhere."""
    assert Packing().score(CPU_ALONE, kinds_of_pods()).points.tolist() == [0, 0, 0, 0]


def test_random_is_seeded_and_fair():
    """One seed draws the same nodes again, and draws each of them."""
    table, chance = table_of(*[[1000]] * 4), Random(7)
    drawn = [int(chance.score(Demand(1, 200), table).points.argmax()) for _ in range(100)]
    again = Random(7)

    assert drawn == [int(again.score(Demand(1, 200), table).points.argmax()) for _ in range(100)]
    assert set(drawn) == {0, 1, 2, 3}


def test_random_draws_a_device_with_room():
    """A share goes to any device that has enough left, never to another."""
    table, chance = table_of([300, 100, 600, 1000], [100]), Random(7)

    assert {chance.pick(Demand(1, 200), table, 0) for _ in range(100)} == {(0,), (2,), (3,)}
    assert chance.pick(Demand(1, 200), table, 1) is None


def test_fragments_by_hand():
    """A GPU that is left is a fragment for pods that can't use it, and for pods that want none.

    Two GPUs with 600 and 1000 left. Half of the pods want 700 of one: 600 is lost to them. A quarter wants
    two whole GPUs, and a quarter none: 1600 are lost to each.
    """
    usual = Counter({Demand(1, 700): 2, Demand(2, WHOLE): 1, CPU_ALONE: 1})
    left, cpu_left = np.array([[600, 1000]]), np.array([64_000])

    found = fragments(left, cpu_left, np.ones((1, 3), bool), Workload.of(usual))
    assert found.tolist() == [0.5 * 600 + 0.25 * 1600 + 0.25 * 1600]


def test_fgd_by_hand():
    """The score is the sigmoid of the GPUs that stop being fragments, of 100.

    To pods that want a whole GPU, a share of 500 on a free GPU adds 500 of fragments, on a broken one it
    takes 500 away.
    """
    policy = FragmentationGradientDescent.knowing(Counter({Demand(1, WHOLE): 1}))
    points = policy.score(Demand(1, 500), table_of([1000], [500])).points

    assert points.tolist() == [int(100 / (1 + np.exp(0.5))), int(100 / (1 + np.exp(-0.5)))]


def test_fgd_keeps_cpu_beside_free_gpus():
    """A pod without GPU goes where no usual pod loses the CPU that it needs beside a GPU."""
    policy = FragmentationGradientDescent.knowing(Counter({Demand(1, WHOLE, cpu=48_000): 1}))
    points = policy.score(CPU_ALONE, table_of([1000], [500], [])).points

    assert points.tolist() == [int(100 / (1 + np.exp(1))), 50, 50]


def test_a_known_workload_is_kept():
    """What comes changes nothing where the usual pods were configured."""
    policy = FragmentationGradientDescent.knowing(Counter({Demand(1, WHOLE): 1}))
    policy.saw(Demand(1, 200))

    assert policy.workload.milli.tolist() == [WHOLE]


@pytest.mark.parametrize("used_first", [True, False])
def test_in_order_breaks_ties_alone(used_first):
    """A higher score stays higher; equal ones become different, the used node's first if wanted."""
    table = table_of(*[[1000]] * 20, [500])
    scores = Scores(np.array([1] * 10 + [0] * 10 + [1]), Normalization.NONE)
    points = in_order(scores, table, used_first=used_first).points

    assert len(set(points.tolist())) == len(points)
    assert points[10:20].max() < min(points[:10].min(), points[20])
    assert (points.argmax() == 20) == (used_first or table.order[20] == table.order.max())


def test_the_order_is_drawn_by_seed():
    """Nodes keep their order when they move in the table; another seed draws another."""
    rows = [[1000]] * 20
    table = table_of(*rows, seed=1)
    by_name = dict(zip(table.names, table.order.tolist(), strict=True))
    table.remove(3, 19)

    assert {name: by_name[name] for name in table.names} == dict(
        zip(table.names, table.order.tolist(), strict=True)
    )
    assert (
        table_of(*rows, seed=1).order.argsort().tolist() != table_of(*rows, seed=2).order.argsort().tolist()
    )
