"""What of a command is not in the scheduler's distribution is named, with what to install."""

import sys

import pytest
from click.testing import CliRunner

import berth
from berth.cli import main


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
    """A command whose package is absent names the distribution that has it."""
    monkeypatch.delitem(sys.modules, "berth.cli.verification", raising=False)
    without(package)

    done = CliRunner().invoke(main, command)

    assert 2 == done.exit_code
    assert (
        f"Error: {package} is not installed; it is in {distribution}: "
        f"pip install {distribution}=={berth.__version__}\n" == done.stderr
    )


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
