"""Whether what is there still says what was applied."""

from typing import Any

from berth.operator.kinds import Json


def covers(found: Any, wanted: Any) -> bool:
    """Say whether every field of `wanted` has its value in `found`; what else is there is others' business.

    Lists have to be of one length, for what is missing or more in one was changed by somebody.
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and covers(found[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(covers(one, other) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted)


def differs(found: Json | None, wanted: Json) -> bool:
    """Say whether an object has to be applied; kind and version are not part of what lists give."""
    if found is None:
        return True
    head = ("apiVersion", "kind")
    return not covers(found, {key: value for key, value in wanted.items() if key not in head})
