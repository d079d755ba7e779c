"""Definitions as text."""

from typing import Any

import yaml

HEADER = "# Made by `make manifests` from core/berth/operator/definitions; edit there.\n"


def to_yaml(document: dict[str, Any]) -> str:
    """Give the document as YAML, its fields in the order in which they were written."""
    return HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Equal parts are written out each time, lists are indented as kubectl's users do not."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal parts out each time."""
        del data
        return True
