"""The changelog by release: a section of level 2 for each, named by its version and date."""

import re

from tests.go_toolchain import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"


def section(version: str, text: str | None = None) -> str:
    """What the changelog says of a version; empty where it says nothing."""
    read = CHANGELOG.read_text(encoding="utf-8") if text is None else text
    heading = rf"^## {re.escape(version)}(?:,? [^\n]*)?\n(.*?)(?=^## |\Z)"
    found = re.search(heading, read, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""
