"""Everything that kube-scheduler v1.36 was seen to do with a configuration file."""

import json
from pathlib import Path

import pytest

from berth.config import ConfigError, DecodeError, ValidationError, load

REPOSITORY = Path(__file__).parents[3]
GOLDEN = REPOSITORY.parent / "shared" / "golden" / "config.jsonl"
OWN = REPOSITORY / "tests" / "vectors" / "config"
BROKEN_JSON = "couldn't get version/kind; json parse error: invalid character"


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def vectors(paths):
    return [pytest.param(vector, id=vector["name"]) for path in paths for vector in lines(path)]


def outcome(text):
    """What `load` makes of a file: the resolved plugins, the errors, and whether the errors are a set."""
    try:
        profiles = load(text).profiles
    except ConfigError as error:
        return {}, list(error.messages), isinstance(error, ValidationError), isinstance(error, DecodeError)
    resolved = {
        profile.scheduler_name: {
            point.value: [list(plugin) for plugin in plugins] for point, plugins in profile.points.items()
        }
        for profile in profiles
    }
    return resolved, [], False, False


def check(vector):
    resolved, errors, unordered, undecodable = outcome(vector["input_yaml"])

    assert vector["valid"] == (not errors), errors
    assert vector["resolved"] == resolved
    expected = vector["errors"]
    if expected and expected[0].startswith("yaml: "):
        assert [True] == [error.startswith("yaml: ") for error in errors]
    elif expected and expected[0].startswith(BROKEN_JSON):
        assert undecodable
    else:
        assert (sorted(expected) if unordered else expected) == (sorted(errors) if unordered else errors)


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"{GOLDEN.name} of kube-scheduler is not on this machine")
def test_kube_scheduler():
    """Validity, errors and plugin lists are kube-scheduler's for every recorded file."""
    cases = lines(GOLDEN)

    assert cases
    for vector in cases:
        check(vector)


@pytest.mark.parametrize("vector", vectors(sorted(OWN.glob("*.jsonl"))))
def test_own(vector):
    """Each family of rules gives what its vectors say."""
    check(vector)
