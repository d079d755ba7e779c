"""The commands of docs/sandbox.md, docs/operator.md and docs/replace-kube-scheduler.md work as written."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from berth.demo.surface import Surface
from berth.sandbox.real import find_assets
from tests.e2e.api_servers import api_server_called
from tests.e2e.command_blocks import NOT_RUN, RUN_BY, headings, pages, sections
from tests.e2e.page import Page, kept
from tests.go_toolchain import ROOT
from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.suite import BUILD_SECONDS

pytestmark = pytest.mark.e2e

PORTS = ("10259", "10459", "10460")
"""The pages'; a test takes some that are free."""
BESIDE = pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)


@pytest.mark.parametrize(
    ("page", "heading", "before"),
    [
        ("docs/sandbox.md", "A scheduler beside it", ""),
        ("docs/operator.md", "Without a cluster", ""),
    ],
    ids=["sandbox", "operator"],
)
def test_in_memory(page, heading, before):
    """The sandbox with a scheduler, and with the operator."""
    assert [] == broken(page, heading, before, {})


@pytest.mark.parametrize(
    ("page", "heading", "before"),
    [
        ("docs/sandbox.md", "With a real API server", "A scheduler beside it"),
        pytest.param("docs/replace-kube-scheduler.md", "A try on one machine", "", marks=BESIDE),
    ],
    ids=["sandbox", "replace-kube-scheduler"],
)
def test_real(page, heading, before, tmp_path):
    """A real API server, and kube-scheduler that Berth takes over from, both in $KUBEBUILDER_ASSETS."""
    api_server_called("real")
    found = find_assets(None, os.environ)
    for program in filter(None, (found.etcd, found.api_server, kube_scheduler())):
        (tmp_path / Path(program).name).symlink_to(program)

    assert [] == broken(page, heading, before, {"KUBEBUILDER_ASSETS": str(tmp_path)})


def broken(page, heading, before, environment):
    """The promises of a section that are not kept; its commands succeed. Files come from another one, too."""
    found = sections((ROOT / page).read_text(encoding="utf-8"))
    text = found[heading]
    for port in PORTS:
        text = text.replace(port, str(Surface.free().port))
    running = Page(text)
    running.files = Page(found.get(before, "")).files | running.files
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        begun = {**os.environ, **environment, "PATH": path, "HOME": folder, "BERTH": str(ROOT)}
        printed = running.run(Path(folder), begun, BUILD_SECONDS)

    assert len(running.commands) == len(printed) > 0
    return [pair for pair in zip(running.promised, printed, strict=True) if not kept(*pair)]


def test_every_page_is_in_the_table():
    """What is to be run has a test that names its page, and what is not a reason; nothing else is listed."""
    found = pages()
    run = {path for path, text in found.items() if headings(text, "sh")}
    not_run = {path: headings(text, "shell") for path, text in found.items() if headings(text, "shell")}

    assert run == set(RUN_BY)
    assert [] == [
        path for path, test in RUN_BY.items() if path not in (ROOT / test).read_text(encoding="utf-8")
    ]
    assert not_run == {path: set(reasons) for path, reasons in NOT_RUN.items()}


def test_waits_are_long_enough():
    """kubectl gives up after 30 seconds by itself: what has to pull images takes longer."""
    commands = [
        (path, line)
        for path, text in pages().items()
        for line in text.splitlines()
        if "kubectl wait " in line or "rollout status" in line
    ]

    assert commands
    assert [] == [
        one for one in commands if "--timeout" not in one[1] and not one[1].startswith("`kubectl wait`")
    ]
