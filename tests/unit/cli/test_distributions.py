"""What of a command is not in the scheduler's distribution is named, with what to install."""

import json
import sys

import pytest
from click.testing import CliRunner

import berth
from berth.cli import main
from tests.go_toolchain import ROOT


@pytest.fixture
def without(monkeypatch):
    """A function that takes a package away, as if it were not installed."""

    def taken(package):
        for name in {package, *(each for each in sys.modules if each.startswith(f"{package}."))}:
            monkeypatch.setitem(sys.modules, name, None)

    return taken


@pytest.mark.parametrize(
    ("package", "distribution", "command"),
    [
        ("berth.sandbox", "berth-sandbox", ["sandbox", "up"]),
        ("berth.demo", "berth-sandbox", ["demo"]),
        ("berth.simulation", "berth-sandbox", ["snapshot", "openb", "-o", "/nowhere"]),
        ("berth.simulation", "berth-sandbox", ["simulate", "openb"]),
        ("berth.descheduling", "berth-sandbox", ["deschedule", "--policy=/nowhere", "openb"]),
        ("berth.simulation_service", "berth-sandbox", ["simulate", "serve", "--listen", "unix:///nowhere"]),
        ("berth.observer", "berth-sandbox", ["record", "/nowhere"]),
        ("berth.operator", "berth-operator", ["operator", "--scheduler-image=x"]),
        ("berth.conformance", "berth-conformance", ["plugin", "verify", "unix:/nowhere.sock"]),
    ],
)
def test_what_to_install(without, monkeypatch, package, distribution, command):
    """A command whose package is absent names the distribution that has it, and where it is in a checkout."""
    monkeypatch.delitem(sys.modules, "berth.cli.verification", raising=False)
    without(package)

    done = CliRunner().invoke(main, command)

    folder = ROOT / "core/distributions" / distribution.removeprefix("berth-")
    assert folder.is_dir()
    assert 2 == done.exit_code
    expected = f"Error: {package} is not installed; it is in {distribution}: pip install {folder}\n"
    assert expected == done.stderr


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        pytest.param(
            {"url": "file:///dist/berth_scheduler-7-py3-none-any.whl", "archive_info": {}},
            "pip install --find-links /dist berth-sandbox==7",
            id="a wheel by its file",
        ),
        pytest.param(
            {"url": "file:///a%20b", "dir_info": {"editable": True}},
            "pip install /a b/core/distributions/sandbox",
            id="a checkout",
        ),
        pytest.param(
            {"url": "https://git.example.com/berth", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "clone https://git.example.com/berth, and pip install core/distributions/sandbox of that",
            id="a repository",
        ),
        pytest.param(
            None,
            "pip install --find-links DIST berth-sandbox==7, where DIST is the folder that berth-scheduler "
            "was installed from (docs/install.md)",
            id="a wheel by its name",
        ),
    ],
)
def test_where_it_comes_from(without, monkeypatch, tmp_path, origin, expected):
    """No index has the distribution: it is installed from where berth-scheduler came from."""
    folder = tmp_path / "berth_scheduler-7.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: berth-scheduler\nVersion: 7\n")
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(tmp_path))
    without("berth.demo")

    done = CliRunner().invoke(main, ["demo"])

    assert f"Error: berth.demo is not installed; it is in berth-sandbox: {expected}\n" == done.stderr


def test_other_absent_modules_are_not_explained(without):
    """A module that no distribution of Berth has is an error of the program itself."""
    without("berth.client")

    done = CliRunner().invoke(main, ["operator", "--scheduler-image=x"])

    assert isinstance(done.exception, ModuleNotFoundError)


def test_help_needs_no_other_distribution(without):
    """The help of a command is shown where its package is absent."""
    without("berth.sandbox")

    done = CliRunner().invoke(main, ["sandbox", "up", "--help"])

    assert (0, True) == (done.exit_code, "--kubeconfig" in done.output)


def test_version():
    """The command says its version."""
    assert f"berth, version {berth.__version__}\n" == CliRunner().invoke(main, ["--version"]).output
