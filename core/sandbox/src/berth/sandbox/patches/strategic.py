"""Strategic merge patch: a merge patch that knows which lists are keyed, from the types' schemas.

Directives: `$patch` (replace, delete, merge), `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`,
`$retainKeys`.
Source: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (v1.36).
"""

from typing import Any, Final

from berth.sandbox import schemas
from berth.sandbox.patches.json_patch import PatchError
from berth.sandbox.store import Json

_DIRECTIVE: Final = "$patch"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_RETAIN: Final = "$retainKeys"


def strategic_merge(target: Any, patch: Json, schema: Json | None) -> Json:
    """Apply the patch to a copy of the target.

    Raises: PatchError when the patch contradicts the schema's merge keys.
    """
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        replaced: Json = _plain(patch)
        return replaced
    if directive == "delete":
        return {}
    result: Json = dict(target) if isinstance(target, dict) else {}
    if _RETAIN in patch:
        result = {key: value for key, value in result.items() if key in patch[_RETAIN]}
    for field, gone in _directives(patch, _DELETE_PRIMITIVES):
        result[field] = [one for one in result.get(field) or [] if one not in gone]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _field(result.get(key), value, schemas.child(schema, key))
    for field, order in _directives(patch, _ORDER):
        result[field] = _reordered(result.get(field) or [], order, schemas.child(schema, field))
    return result


def _directives(patch: Json, prefix: str) -> list[tuple[str, Any]]:
    return [(key[len(prefix) :], value) for key, value in patch.items() if key.startswith(prefix)]


def _field(current: Any, value: Any, schema: Json | None) -> Any:
    if isinstance(value, dict):
        strategy = str((schema or {}).get("x-kubernetes-patch-strategy", ""))
        if "replace" in strategy.split(",") and "retainKeys" not in strategy:
            return _plain(value)
        return strategic_merge(current, value, schema)
    if isinstance(value, list):
        return _list(current if isinstance(current, list) else [], value, schema)
    return value


def _list(current: list[Any], patch: list[Any], schema: Json | None) -> list[Any]:
    if "merge" not in str((schema or {}).get("x-kubernetes-patch-strategy", "")).split(","):
        return [_plain(one) for one in patch]
    if any(isinstance(one, dict) and one.get(_DIRECTIVE) == "replace" for one in patch):
        return [_plain(one) for one in patch if not (isinstance(one, dict) and _DIRECTIVE in one)]
    key = (schema or {}).get("x-kubernetes-patch-merge-key")
    if key is None:
        return current + [one for one in patch if one not in current]
    return _keyed(current, patch, str(key), schemas.item(schema))


def _keyed(current: list[Any], patch: list[Any], key: str, schema: Json | None) -> list[Any]:
    result = list(current)
    for one in patch:
        if not isinstance(one, dict) or key not in one:
            raise PatchError(f"map: {one} does not contain declared merge key: {key}")
        found = [index for index, item in enumerate(result) if item.get(key) == one[key]]
        if one.get(_DIRECTIVE) == "delete":
            result = [item for item in result if item.get(key) != one[key]]
        elif found:
            result[found[0]] = strategic_merge(result[found[0]], one, schema)
        else:
            result.append(strategic_merge({}, one, schema))
    return result


def _reordered(current: list[Any], order: list[Any], schema: Json | None) -> list[Any]:
    key = (schema or {}).get("x-kubernetes-patch-merge-key")

    def identity(one: Any) -> Any:
        return one.get(key) if key and isinstance(one, dict) else one

    ranks = [identity(one) for one in order]
    listed = sorted(
        (one for one in current if identity(one) in ranks), key=lambda one: ranks.index(identity(one))
    )
    # Items that the client does not know of stay behind the item they stood behind.
    pending = iter(listed)
    return [next(pending) if identity(one) in ranks else one for one in current]


def _plain(value: Any) -> Any:
    """Drop directives and nulls from a value that is taken over as it is."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if not key.startswith("$") and one is not None}
    return [_plain(one) for one in value] if isinstance(value, list) else value
