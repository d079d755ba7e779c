"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386).

Both work on a copy; the document given is left alone.
"""

import copy
from typing import Any

from berth.sandbox.store import Json


class PatchError(ValueError):
    """The patch cannot be applied; the text says why."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch: maps are merged, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: Json, operations: Any) -> Json:
    """Apply a list of JSON Patch operations, all or none.

    Raises: PatchError when an operation is malformed, its path is not there, or a test fails.
    """
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    holder = {"": copy.deepcopy(document)}
    for operation in operations:
        if not isinstance(operation, dict) or "op" not in operation or "path" not in operation:
            raise PatchError(f"not an operation: {operation!r}")
        _apply(holder, operation)
    result: Json = holder[""]
    return result


def _apply(holder: Json, operation: Json) -> None:
    kind, path = operation["op"], operation["path"]
    if kind == "add":
        _add(holder, path, copy.deepcopy(operation.get("value")))
    elif kind == "remove":
        _remove(holder, path)
    elif kind == "replace":
        _get(holder, path)
        _replace(holder, path, copy.deepcopy(operation.get("value")))
    elif kind == "move":
        _add(holder, path, _remove(holder, operation.get("from", "")))
    elif kind == "copy":
        _add(holder, path, copy.deepcopy(_get(holder, operation.get("from", ""))))
    elif kind == "test":
        if _get(holder, path) != operation.get("value"):
            raise PatchError(f"testing path {path} failed")
    else:
        raise PatchError(f"Unexpected kind: {kind}")


def _tokens(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise PatchError(f"a path starts with a slash: {path!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")]


def _parent(holder: Json, path: str) -> tuple[Any, str]:
    *parents, last = _tokens(path)
    node: Any = holder
    for token in parents:
        node = _step(node, token, path)
    return node, last


def _step(node: Any, token: str, path: str) -> Any:
    if isinstance(node, dict) and token in node:
        return node[token]
    if isinstance(node, list):
        return node[_index(node, token, path)]
    raise PatchError(f"doc is missing path: {path}: missing value")


def _index(node: list[Any], token: str, path: str, *, end: int = 0) -> int:
    if not token.isdecimal() or int(token) >= len(node) + end:
        raise PatchError(f"doc is missing path: {path}: unable to access invalid index: {token}")
    return int(token)


def _get(holder: Json, path: str) -> Any:
    node, last = _parent(holder, path)
    return _step(node, last, path)


def _add(holder: Json, path: str, value: Any) -> None:
    node, last = _parent(holder, path)
    if isinstance(node, list):
        node.insert(len(node) if last == "-" else _index(node, last, path, end=1), value)
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise PatchError(f"doc is missing path: {path}: missing value")


def _replace(holder: Json, path: str, value: Any) -> None:
    node, last = _parent(holder, path)
    if isinstance(node, list):
        node[_index(node, last, path)] = value
    else:
        node[last] = value


def _remove(holder: Json, path: str) -> Any:
    node, last = _parent(holder, path)
    removed = _step(node, last, path)
    if isinstance(node, list):
        del node[_index(node, last, path)]
    else:
        del node[last]
    return removed
