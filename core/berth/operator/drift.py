"""Whether what is there still says what was applied."""

from typing import Any

from berth.operator.kinds import Json


def covers(found: Any, wanted: Any) -> bool:
    """Say whether every field of `wanted` has its value in `found`; what else is there is others' business.

    That goes for items of a list of objects, too: server-side apply leaves those of others where they are.
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and covers(found[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not all(isinstance(one, dict) for one in wanted):
            return bool(found == wanted)
        return isinstance(found, list) and all(any(covers(one, item) for one in found) for item in wanted)
    return bool(found == wanted)


def differs(found: Json | None, wanted: Json) -> bool:
    """Say whether an object has to be applied; kind and version are not part of what lists give."""
    if found is None:
        return True
    head = ("apiVersion", "kind")
    return not covers(found, {key: value for key, value in wanted.items() if key not in head})
