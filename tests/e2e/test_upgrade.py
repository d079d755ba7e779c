"""From an earlier version to this one and back, on a real API server.

BERTH_EARLIER names the earlier version's tree: `git archive REVISION core kustomize | tar -x -C FOLDER`.
"""

import os
from pathlib import Path

import pytest

from tests.e2e.operated_installation import RealInstallation
from tests.suite import PATIENCE_SECONDS
from tests.unit.operator.at_work import MONITOR, RULES

VARIABLE = "BERTH_EARLIER"
EARLIER = Path(os.environ.get(VARIABLE, "/nonexistent"))
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not (EARLIER / "kustomize").is_dir(), reason=f"{VARIABLE} names no tree of an earlier version"
    ),
]
OVERLAY = "overlays/all-plugins"


@pytest.fixture
def cluster(tmp_path):
    found = RealInstallation(tmp_path)
    try:
        found.start()
        for definition in (MONITOR, RULES):
            found.kubectl("create", "-f", "-", stdin=definition)
        yield found
    finally:
        found.stop()


def hand_over(cluster, operator, name, tree=None):
    """Replace the operator, and wait until it has rolled the Scheduler out; gives the new one."""
    operator.terminate()
    operator.wait(PATIENCE_SECONDS)
    before = cluster.get("deployment", "berth-main")["metadata"]["generation"]
    started = cluster.start_operator(name, tree)
    cluster.until(
        lambda: cluster.get("deployment", "berth-main")["metadata"]["generation"] != before, "it is changed"
    )
    cluster.until(lambda: cluster.condition("Progressing")[1] == "RolledOut", "it is rolled out")
    return started


def test_there_and_back(cluster):
    """What an earlier operator made is kept by this one, and given back, as the spec says."""
    for folder in ("crds", "third-party-crds", "base", OVERLAY):
        if (EARLIER / "kustomize" / folder).is_dir():
            cluster.apply(folder, EARLIER / "kustomize")
    earlier = cluster.start_operator("earlier", EARLIER)
    cluster.until(lambda: cluster.condition("Available")[0] == "True", "the earlier one keeps it")
    uid = cluster.get("deployment", "berth-main")["metadata"]["uid"]

    for folder in ("crds", "third-party-crds", OVERLAY):
        cluster.apply(folder)
    this = hand_over(cluster, earlier, "this")
    assert ("False", "AsExpected") == cluster.condition("Degraded")[:2]
    assert "DriftCorrected" not in (cluster.folder / "this.log").read_text()

    cluster.apply(OVERLAY, EARLIER / "kustomize")
    hand_over(cluster, this, "earlier-again", EARLIER)
    assert ("False", "AsExpected") == cluster.condition("Degraded")[:2]
    assert uid == cluster.get("deployment", "berth-main")["metadata"]["uid"]
