"""Whether what is there still says what was applied."""

from typing import Any, Final

from berth.operator.kinds import Json

# What server-side apply treats as one value, in the kinds that are applied here: a label more in a selector
# is another selector. Source: x-kubernetes-map-type and x-kubernetes-list-type of the API's schema (v1.36).
_WHOLE_MAPS: Final = frozenset(
    {"selector", "podSelector", "namespaceSelector", "labelSelector", "nodeSelector"}
)
_WHOLE_LISTS: Final = frozenset({"subjects", "ingress", "egress", "from", "to", "tolerations"})


def covers(found: Any, wanted: Any, *, whole: bool = False) -> bool:
    """Say whether every field of `wanted` has its value in `found`; what else is there is others' business.

    That goes for items of a list of objects, too: server-side apply leaves those of others where they are.
    In a `whole` list, and in lists within it, no other writer has items.
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            _field_covers(key, found[key], value, whole=whole) if key in found else _is_left_out(value)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list) and all(isinstance(one, dict) for one in wanted):
        if whole:
            return isinstance(found, list) and _pairs_cover(found, wanted)
        return isinstance(found, list) and all(any(covers(one, item) for one in found) for item in wanted)
    return bool(found == wanted)


def _pairs_cover(found: list[Any], wanted: list[Any]) -> bool:
    pairs = zip(found, wanted, strict=False)
    return len(found) == len(wanted) and all(covers(one, item, whole=True) for one, item in pairs)


def _is_left_out(value: Any) -> bool:
    """Say whether the API shows a field of this value by leaving it out."""
    return value is False or (value == 0 and isinstance(value, int))


def _field_covers(key: str, found: Any, wanted: Any, *, whole: bool) -> bool:
    if key in _WHOLE_MAPS:
        return bool(found == wanted)
    return covers(found, wanted, whole=whole or key in _WHOLE_LISTS)


def differs(found: Json | None, wanted: Json) -> bool:
    """Say whether an object has to be applied; kind and version are not part of what lists give."""
    if found is None:
        return True
    head = ("apiVersion", "kind")
    return not covers(found, {key: value for key, value in wanted.items() if key not in head})
