"""Arguments in Python: a dataclass is their schema, defaults and checks."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import pytest

from berth_sdk import ArgumentError, Meta, Plugin, plugin
from berth_sdk.capabilities import capabilities
from berth_sdk.testing import make_node, make_pod, running
from tests.failures.reporting import reports


@dataclass(frozen=True)
class Source:
    address: str
    seconds: Annotated[float, Meta(gt=0)] = 1.5


@dataclass(frozen=True)
class Settings:
    label: Annotated[str, Meta(min_length=1, description="names a team")] = "team"
    mode: Literal["pack", "spread"] = "pack"
    count: Annotated[int, Meta(ge=1)] = 2
    weights: list[int] = field(default_factory=list)
    source: Source | None = None
    other: Source = field(default_factory=lambda: Source("here"))


class Configured(Plugin):
    """Turns down by its label."""

    name = "configured"
    arguments = Settings

    def __init__(self):
        self.seen = []

    def configure(self, arguments, profile):
        if arguments.count == 13:
            raise ArgumentError("count: not 13")
        self.seen.append((arguments, profile))

    def filter(self, pod, _node):
        return self.arguments_of(pod).label


async def test_defaults_and_what_is_given():
    """Each profile has what it says over the defaults, and functions see it."""
    made = Configured()
    async with running(made, make_node("n"), arguments={"label": "x", "other": {"address": "y"}}) as host:
        found = (await host.filter(make_pod("p"))).nodes["n"].text

    assert "x" == found
    assert [(Settings(label="x", other=Source("y")), host.profile)] == made.seen
    assert Settings() == made.arguments_for("another")


@reports("sdk-arguments-refused", log="`configure`, with profile and error")
@pytest.mark.parametrize(
    ("given", "errors"),
    [
        pytest.param(
            {"lable": 1},
            ["lable: unknown; known are label, mode, count, weights, source, other"],
            id="unknown",
        ),
        pytest.param({"label": 1}, ["label: expected str, got 1"], id="type"),
        pytest.param({"label": ""}, ['label: expected str of length >= 1, got ""'], id="length"),
        pytest.param({"mode": "x"}, ['mode: expected one of pack, spread, got "x"'], id="choice"),
        pytest.param(
            {"count": 0, "label": 0},
            ["label: expected str, got 0", "count: expected int >= 1, got 0"],
            id="two",
        ),
        pytest.param({"weights": [1, "2"]}, ['weights[1]: expected int, got [1,"2"]'], id="in a list"),
        pytest.param(
            {"other": {"seconds": 0}},
            ["other.seconds: expected float > 0.0, got 0", "other.address: is wanted"],
            id="inside",
        ),
        pytest.param(
            {"other": {"address": "a", "x": 1}},
            ["other.x: unknown; known are address, seconds"],
            id="unknown inside",
        ),
        pytest.param(
            {"source": {"address": "a", "x": 1}},
            ["source.x: unknown; known are address, seconds"],
            id="unknown inside what may be None",
        ),
        pytest.param({"count": 13}, ["count: not 13"], id="what only the author knows"),
    ],
)
async def test_wrong(caplog, given, errors):
    """Everything that is wrong is reported with its path, and what was in force stays."""
    made = Configured()
    async with running(made, make_node("n"), arguments={"label": "kept"}) as host:
        reported = await host.configure(given)

        assert errors == list(reported)
        assert [f"configure profile={host.profile} err={error}" for error in errors] == caplog.messages
        assert "kept" == made.arguments_for(host.profile).label


def test_schema():
    """What the dataclass says is announced as a JSON Schema without further properties."""
    schema = msgspec.json.decode(capabilities(Configured()).arguments_schema)

    assert ("object", False) == (schema["type"], schema["additionalProperties"])
    assert {"type": "string", "minLength": 1, "description": "names a team", "default": "team"} == schema[
        "properties"
    ]["label"]
    assert not schema["$defs"]["Source"]["additionalProperties"]


def test_two_of_a_kind():
    """Plugins of one class have arguments of their own."""
    first, second = Configured(), Configured()
    first._arguments_by_profile["p"] = Settings("x")

    assert ("x", "team") == (first.arguments_for("p").label, second.arguments_for("p").label)
    assert plugin("none").arguments_for("p") is None


class Breaking(Plugin):
    """Breaks over arguments that it was given."""

    name = "breaking"

    def configure(self, arguments, _profile):
        if arguments:
            raise LookupError("a bug")


@reports("sdk-arguments-refused", log="`configure`, with a traceback, where the plugin breaks over them")
async def test_a_plugin_that_breaks_over_its_arguments(caplog):
    """The host is given what it raised, and its own log has where."""
    async with running(Breaking(), make_node("n")) as host:
        (error,) = await host.configure({"a": 1})

        assert "LookupError: a bug" == error
        assert f"configure profile={host.profile}" == caplog.messages[0]
        assert caplog.records[0].exc_info
