"""Definitions as text."""

from typing import Any

from berth.config.dump import yaml_text

HEADER = "# Made by `make manifests` from core/operator; edit there.\n"


def to_yaml(document: dict[str, Any]) -> str:
    """Give the document as YAML, its fields in the order in which they were written."""
    return HEADER + yaml_text(document)
