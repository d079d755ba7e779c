"""What is said beside an API server of a release that Berth was not tried with."""

import pytest

from berth.config.releases.release import PREVIEWS, RELEASES, shown
from berth.config.releases.tried import NEWEST, OLDEST, untried
from berth.operator.reporting.conditions import KUBERNETES_TESTED
from berth.operator.reporting.kubernetes_condition import kubernetes_tested
from tests.go_toolchain import ROOT

PAGE = (ROOT / "docs/versions.md").read_text()
AFTER = (NEWEST[0], NEWEST[1] + 1)
BEFORE = (OLDEST[0], OLDEST[1] - 1)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        pytest.param(f"v{shown(NEWEST)}.1+k3s1", None, id="the newest"),
        pytest.param(f"v{shown(OLDEST)}.0", None, id="the oldest"),
        pytest.param(f"v{shown(AFTER)}.0-rc.1", "NewerThanTried", id="newer, or a preview"),
        pytest.param("v2.0.0", "NewerThanTried", id="a new major version"),
        pytest.param(f"v{shown(BEFORE)}.9", "OlderThanTried", id="older"),
        pytest.param("dev", None, id="none that can be read"),
    ],
)
def test_untried(version, reason):
    """Newer and older servers are named, with the nearest one that was tried."""
    found = untried(version)

    assert reason == (None if found is None else found.reason)


def test_condition():
    """Every Scheduler says it; nothing while the version is not known."""
    (good,) = kubernetes_tested(f"v{shown(NEWEST)}.0")
    (bad,) = kubernetes_tested(f"v{shown(AFTER)}.0")

    assert [] == kubernetes_tested("")
    assert (KUBERNETES_TESTED, True, "Tested") == good[:3]
    assert (KUBERNETES_TESTED, False, "NewerThanTried") == bad[:3]
    assert f"{shown(AFTER)} is newer than {shown(NEWEST)}" in bad.message


def test_the_page_has_every_release():
    """Each release that is followed has its row, a preview is called so, and the rows end with the oldest."""
    lines = PAGE.partition("## ")[0].splitlines()
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("| 1.")}

    assert set(map(shown, RELEASES)) | {shown(OLDEST)} <= rows.keys()
    assert {shown(one) for one in PREVIEWS} == {name for name, row in rows.items() if "a preview" in row}
    assert shown(OLDEST) == min(rows, key=lambda name: [*map(int, name.split("."))])
