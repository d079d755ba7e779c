"""No rule without a scenario, no scenario that cites what is not there, and pages that say the same."""

import pytest

from tests.scenarios.chapters import CHAPTERS
from tests.scenarios.citations import citations, parts, rules
from tests.scenarios.page import FOLDER, pages


def test_every_rule_is_cited():
    """Each rule that a part lists has a scenario of its own."""
    assert [] == sorted(rules().keys() - citations().keys())


def test_every_citation_is_a_rule():
    """A scenario's name begins with the number of a rule that is listed."""
    cited = citations()

    assert {} == {number: cited[number] for number in cited.keys() - rules().keys()}


@pytest.mark.parametrize("chapter", [key for key, chapter in CHAPTERS.items() if chapter.sections])
def test_every_section_is_listed(chapter):
    """There are rules of each section of a chapter."""
    listed = {".".join(number.split(".")[:2]) for number in rules() if number.split(".")[0] == chapter}

    assert {f"{chapter}.{n}" for n, _ in enumerate(CHAPTERS[chapter].sections, 1)} == listed


def test_parts_have_scenarios():
    """Each part's folder says something."""
    cited = {name.partition("/")[0] for names in citations().values() for name in names}

    assert set(parts()) == cited


def test_pages():
    """docs/behaviour is as `python -m tests.scenarios.page` makes it, and has no other page."""
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}

    assert pages() == written
