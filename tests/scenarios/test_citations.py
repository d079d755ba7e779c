"""No rule of the specification without a scenario, and no scenario that cites what is not there."""

import pytest

from tests.scenarios.citations import SECTIONS, citations, parts, rules


def test_every_rule_is_cited():
    """Each rule that a part lists has a scenario of its own."""
    assert [] == sorted(rules().keys() - citations().keys())


def test_every_citation_is_a_rule():
    """A scenario's name begins with the number of a rule that is listed."""
    cited = citations()

    assert {} == {number: cited[number] for number in cited.keys() - rules().keys()}


@pytest.mark.parametrize("chapter", SECTIONS)
def test_every_section_is_listed(chapter):
    """There are rules of each section of a chapter."""
    listed = {".".join(number.split(".")[:2]) for number in rules() if number.split(".")[0] == chapter}

    assert {f"{chapter}.{section}" for section in range(1, SECTIONS[chapter] + 1)} == listed


def test_parts_have_scenarios():
    """Each part's folder says something."""
    cited = {name.partition("/")[0] for names in citations().values() for name in names}

    assert set(parts()) == cited
