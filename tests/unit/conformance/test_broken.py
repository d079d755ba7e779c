"""A plugin that breaks one promise fails the check of that promise, and no other.

Here each broken plugin meets that check, those it builds upon, and those of the same subject;
`python -m tests.unit.conformance.every_check` lets it meet all.
"""

import pytest

from berth.conformance import CHECKS
from tests.unit.conformance.broken import failed, verified
from tests.unit.conformance.every_fault import FAULTS


def related(name):
    """That check, what it builds upon, and what has the same subject."""
    subject = name.partition("/")[0]
    wanted = {name, *CHECKS[name].after}
    return [each for each in CHECKS.values() if each.id in wanted or each.id.partition("/")[0] == subject]


def test_one_for_each():
    """There is a broken plugin for each check."""
    assert set(CHECKS) == set(FAULTS)


@pytest.mark.parametrize("name", CHECKS)
async def test_broken(name):
    """It fails its check and passes the others."""
    results = await verified(FAULTS[name], related(name))

    assert {name} == set(failed(results)), failed(results)
