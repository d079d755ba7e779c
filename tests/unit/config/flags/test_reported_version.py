"""--version answers as kube-scheduler's does, with Berth's version as build metadata."""

import re

import pytest

from berth.config.flags.reported_version import parse_version, version_text
from berth.version import version


def test_a_word_and_a_version():
    """Scripts take the second word, or what looks like a version: both are semver."""
    first, shown = version_text("true").split(" ")

    assert ("Kubernetes", f"v1.36.0+berth.{version()}") == (first, shown)
    assert re.fullmatch(r"v\d+\.\d+\.\d+\+[0-9A-Za-z.-]+", shown)


def test_raw():
    """As Go prints a version.Info."""
    assert version_text("raw").startswith('version.Info{Major:"1", Minor:"36", EmulationMajor:"", ')
    assert f'GitVersion:"v1.36.0+berth.{version()}"' in version_text("raw")


@pytest.mark.parametrize(
    ("text", "value"), [("true", "true"), ("1", "true"), ("false", ""), ("raw", "raw"), ("v1.36.0-x",) * 2]
)
def test_values(text, value):
    """A switch, the word raw, or another version of the same release."""
    assert value == parse_version(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("foo", 'strconv.ParseBool: parsing "foo": invalid syntax'),
        ("v9.9.9", 'version "v9.9.9" must match major/minor/patch of default version "v1.36.0"'),
        ("v1.36.01", 'version "v1.36.01" must match major/minor/patch of default version "v1.36.0"'),
    ],
)
def test_no_value(text, why):
    """Anything else is refused, in kube-scheduler's words."""
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_version(text)


@pytest.mark.parametrize("value", ["", "v1.36.0-x"])
def test_nothing_to_print(value):
    """Without the flag, and with a version to report, the scheduler starts."""
    assert not version_text(value)
