"""What of a command is not in the scheduler's distribution is named, with what to install."""

import json
import sys

import pytest
from click.testing import CliRunner

from berth.cli.config import config
from berth.cli.distributions import DISTRIBUTIONS
from berth.cli.main import VERBS, main
from berth.cli.plugins.plugin import plugin
from berth.cli.verbs import COMMANDS
from berth.version import version
from tests import sources
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
        ("berth.simulation", "berth-simulation", ["snapshot", "openb", "-o", "/nowhere"]),
        ("berth.simulation", "berth-simulation", ["simulate", "openb"]),
        ("berth.descheduling", "berth-simulation", ["deschedule", "--policy=/nowhere", "openb"]),
        (
            "berth.simulation_service",
            "berth-simulation",
            ["simulate", "serve", "--listen", "unix:///nowhere"],
        ),
        ("berth.observer", "berth-simulation", ["record", "/nowhere"]),
        ("berth.operator", "berth-operator", ["operator", "--scheduler-image=x"]),
        ("berth.conformance", "berth-conformance", ["plugin", "verify", "unix:/nowhere.sock"]),
    ],
)
def test_what_to_install(without, monkeypatch, package, distribution, command):
    """A command whose package is absent names the distribution that has it, and where it is in a checkout."""
    monkeypatch.delitem(sys.modules, "berth.commands.verification", raising=False)
    without(package)

    done = CliRunner().invoke(main, command)

    folder = ROOT / "core" / distribution.removeprefix("berth-")
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
            "pip install /a b/core/sandbox",
            id="a checkout",
        ),
        pytest.param(
            {"url": "https://git.example.com/berth", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "clone https://git.example.com/berth, and pip install core/sandbox of that",
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


@pytest.mark.parametrize("module", COMMANDS)
def test_an_absent_command(without, module):
    """Help lists what is not installed; asked for itself it names its distribution."""
    package = COMMANDS[module]
    groups = {(): VERBS, ("plugin",): plugin.elsewhere, ("config",): config.elsewhere}
    group, name = next(
        (group, name)
        for group, verbs in groups.items()
        for name, place in verbs.items()
        if place.startswith(f"{module}:")
    )
    without(module)

    listed = CliRunner().invoke(main, [*group, "--help"])
    asked = CliRunner().invoke(main, [*group, name, "--help", "-x", "1"])

    assert 0 == listed.exit_code
    assert f"{name} " in listed.stdout
    assert f"Not installed: it is in {DISTRIBUTIONS[package]}." in listed.stdout
    assert 2 == asked.exit_code
    assert asked.stderr.startswith(
        f"Error: {package} is not installed; it is in {DISTRIBUTIONS[package]}: pip "
    )


def test_no_other_distribution(without):
    """The scheduler's commands are there without all others."""
    for name in ("berth.commands", *COMMANDS, *DISTRIBUTIONS):
        without(name)

    done = CliRunner().invoke(main, ["--help"])

    assert (0, 7) == (done.exit_code, done.stdout.count("Not installed"))
    assert 0 == CliRunner().invoke(main, ["scheduler", "--help"]).exit_code


def test_where_each_module_is():
    """Each package and each command stands in the source tree that is named like its distribution."""
    files = {name: path.relative_to(ROOT).parts[1] for name, path in sources.modules().items()}
    trees = {package: files[f"{package.removeprefix('berth.')}/__init__.py"] for package in DISTRIBUTIONS}

    assert {package: f"berth-{tree}" for package, tree in trees.items()} == DISTRIBUTIONS
    for module, package in COMMANDS.items():
        assert files[f"{module.removeprefix('berth.').replace('.', '/')}.py"] == trees[package]


def test_no_tree_has_the_package_for_itself():
    """`berth` and `berth.commands` are made of parts: an __init__.py in one of them would hide the others."""
    assert not {"__init__.py", "commands/__init__.py"} & sources.modules().keys()


def test_version():
    """The command says its version."""
    assert f"berth, version {version()}\n" == CliRunner().invoke(main, ["--version"]).output
