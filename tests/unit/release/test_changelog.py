"""A version's section of the changelog is what its release says."""

import pytest

from tests.release.changelog import section

TEXT = """\
# Changelog

## Unreleased

- Not yet.

## 0.2.0, 2026-12-01

- Two.
- Three.

## 0.1.0

- One.
"""


@pytest.mark.parametrize(
    ("version", "notes"),
    [("0.2.0", "- Two.\n- Three."), ("0.1.0", "- One."), ("0.2", ""), ("0.3.0", "")],
)
def test_section(version, notes):
    """A version has its own section and no other's; one without a section has nothing."""
    assert notes == section(version, TEXT)
