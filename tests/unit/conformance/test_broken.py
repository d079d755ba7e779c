"""A plugin that breaks one promise fails the check of that promise, and no other.

Here each broken plugin meets that check, those it builds upon, and its neighbours of the same subject;
`python -m tests.unit.conformance.every_check` lets it meet all.
"""

import pytest

from berth.conformance import CHECKS
from tests.unit.conformance.broken import failed, verified
from tests.unit.conformance.every_fault import FAULTS


def related(name):
    """That check, what it builds upon, and those before and after it, where they have the same subject."""
    subject, names = name.partition("/")[0], list(CHECKS)
    position = names.index(name)
    near = [each for each in names[max(position - 1, 0) : position + 2] if each.partition("/")[0] == subject]
    wanted = {*near, *CHECKS[name].after}
    return [each for each in CHECKS.values() if each.id in wanted]


def test_one_for_each():
    """There is a broken plugin for each check."""
    assert set(CHECKS) == set(FAULTS)


@pytest.mark.parametrize("name", CHECKS)
async def test_broken(name):
    """It fails its check and passes the others."""
    results = await verified(FAULTS[name], related(name))

    assert {name} == set(failed(results)), failed(results)
