"""`berth config`: one line for each error, exit status 2, no traceback."""

import json

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from tests.failures.reporting import reports
from tests.unit.config.files import BUILDING, DEFAULTS, file, names, plugins_file

LIST = (
    "apiVersion: berth.dev/v1alpha1\nkind: PluginList\nplugins: [{name: Shop, address: 'localhost:1',"
    " extensionPoints: [score]}]\n"
)
SHOP = plugins_file(multiPoint={"enabled": names("Shop")})


@pytest.fixture
def run(tmp_path):
    """Write files, run a command on them, give status, output and error lines without the folder's name."""

    def run(verb, text, *arguments, **others):
        for name, content in {"config": text, **others}.items():
            if content is not None:
                (tmp_path / name).write_text(content, encoding="utf-8")
        places = [str(tmp_path / argument) if argument in others else argument for argument in arguments]
        result = CliRunner().invoke(main, ["config", verb, str(tmp_path / "config"), *places])
        clean = f"{tmp_path}/"
        return (
            result.exit_code,
            result.stdout.replace(clean, ""),
            result.stderr.replace(clean, "").splitlines(),
        )

    return run


def test_valid(run):
    """A good file is called valid, with its profiles."""
    assert (0, "config: valid; profiles: a, b\n", []) == run(
        "validate", file("profiles: [{schedulerName: a}, {schedulerName: b}]")
    )


@reports(
    "config-wrong",
    answer="`berth config validate`, and a start: each complaint with file, field and remedy; exit status 1",
)
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (None, ["Error: config: No such file or directory"]),
        ("", ["Error: config: Object 'Kind' is missing in ''"]),
        (
            file("parallelism: 0\npodInitialBackoffSeconds: 0"),
            [
                "Error: config: parallelism: Invalid value: 0: should be an integer value greater than zero",
                "Error: config: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            ],
        ),
        (
            file("a: 1\na: 1"),
            [
                (
                    "Error: config: strict decoding error: yaml: unmarshal errors:"
                    ' line 4: key "a" already set in map, unknown field "a"'
                ),
            ],
        ),
        (
            plugins_file(score={"enabled": names("Nodeaffinity")}),
            [
                (
                    f'Error: config: {BUILDING}ScorePlugin "Nodeaffinity" does not exist (did you mean'
                    " NodeAffinity? An out-of-tree plugin must be in a PluginList, see --plugins)"
                ),
            ],
        ),
    ],
)
def test_invalid(run, text, lines):
    """A bad file gets a line for each error."""
    assert (2, "", lines) == run("validate", text)


def test_long_message(run):
    """A message that quotes a whole file is cut."""
    _status, _output, (line,) = run("validate", "a: " + "b" * 5000)

    assert len(line) < 700
    assert line.endswith("...")


def test_wrong_gate(run):
    """A wrong feature gate is an error too."""
    assert (2, "", ["Error: unrecognized feature gate: X"]) == run(
        "validate", file(), "--feature-gates", "X=true"
    )


def test_plugins(run):
    """Out-of-tree plugins come from a list beside the file or in it."""
    assert 0 == run("validate", SHOP, "--plugins", "list", list=LIST)[0]
    assert 0 == run("validate", f"{SHOP}---\n{LIST}")[0]
    assert 2 == run("validate", SHOP)[0]


def test_wrong_plugins(run):
    """A mistake in the list names the list's file."""
    status, _output, lines = run("validate", SHOP, "--plugins", "list", list=LIST.replace("localhost:1", "h"))

    expected = 'Error: list: plugins[0].address: "h" is no address; write unix:/path/to.sock or host:port'
    assert (2, [expected]) == (status, lines)


def test_resolve_json(run):
    """The plugins of each profile, for machines."""
    status, output, _lines = run("resolve", file(), "-o", "json")

    found = json.loads(output)["default-scheduler"]
    assert (0, list(DEFAULTS)) == (status, list(found))
    assert [["PrioritySort", 0]] == found["queueSort"]


def test_resolve_table(run):
    """The plugins of each profile, for people."""
    _status, output, _lines = run("resolve", file())

    assert output.startswith("profile default-scheduler\n  preEnqueue         SchedulingGates, Dynamic")
    assert "\n  permit             -\n" in output
    assert "TaintToleration=3, NodeAffinity=2" in output
