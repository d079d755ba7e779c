"""How deep what users write freely may be nested, so that no reader of it recurses too far."""

from typing import Any, Final

DEEPEST: Final = 48
"""Less than what client.wire reads of a document that is too deep for it: such a one is found here."""
_SHOWN: Final = 80


def too_deep(document: Any) -> str:
    """Give the path of the first value below DEEPEST levels, nothing where there is none.

    Cost: each value once, without recursion.
    """
    left: list[tuple[int, str, Any]] = [(0, "spec", document)]
    while left:
        depth, path, value = left.pop()
        if depth > DEEPEST:
            return f"{path[:_SHOWN]}..."
        if isinstance(value, dict):
            left += [(depth + 1, _below(path, f".{name}"), below) for name, below in value.items()]
        elif isinstance(value, list):
            left += [(depth + 1, _below(path, f"[{index}]"), below) for index, below in enumerate(value)]
    return ""


def _below(path: str, step: str) -> str:
    return path if len(path) > _SHOWN else path + step
