"""A quiet tenant's pods are bound at their first attempt, whatever a hostile tenant writes meanwhile.

How long they wait, with as many entries as the API server takes, `python -m tests.hostile tenants` measures.
"""

import pytest

from tests.hostile.tenant_clusters import drawn
from tests.hostile.tenants import played

PART = 64
"""Rows of many entries have so many times fewer than the API server takes."""


@pytest.mark.parametrize("seed", range(5))
def test_a_quiet_tenants_pods_need_one_attempt_each(seed):
    cluster = drawn(seed, quiet_pods=50, part=PART)

    assert [1] * 50 == played(cluster, hostile=True).tries


def test_a_seed_draws_one_cluster():
    """Another run of the command plays the same objects at the same times."""
    one, same, other = (drawn(seed, quiet_pods=2, part=PART) for seed in (3, 3, 4))

    assert one.rows == same.rows
    assert [each.at for each in one.hostile] == [each.at for each in same.hostile]
    assert one.rows != other.rows
