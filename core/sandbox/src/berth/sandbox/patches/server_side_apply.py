"""Server-side apply: merge what a manager wants, keep what others own, remove what it no longer wants.

An object that was never applied carries no managedFields here (a real server notes every writer from
the start); its first apply finds everything owned by `before-first-apply`, as upstream does for such objects.
Source: sigs.k8s.io/structured-merge-diff/v6/merge/update.go and apimachinery/pkg/util/managedfields (v1.36).
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from berth.sandbox import schemas
from berth.sandbox.errors import ApiError
from berth.sandbox.patches import managed_fields as fields
from berth.sandbox.patches.managed_fields import ITEM, Fields, Path
from berth.sandbox.store import Json, decode

_BEFORE: Final = "before-first-apply"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Writer(msgspec.Struct, frozen=True):
    """Who writes, how, and through which version and subresource."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    now: str

    def owns(self, entry: Json) -> bool:
        """Say whether a managedFields entry is this writer's."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
        )

    def entry(self, paths: set[Path]) -> Json:
        """Make the managedFields entry."""
        made = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.now,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields.to_fields_v1(paths),
        }
        return {**made, "subresource": self.subresource} if self.subresource else made


def apply_to(live: Json, applied: Json, schema: Json | None, writer: Writer, *, force: bool) -> Json:
    """Give the live object with the applied configuration merged in.

    Raises: ApiError when fields with other values are owned by others, unless forced.
    """
    wanted, current = fields.flatten(applied, schema), fields.flatten(live, schema)
    managers = live["metadata"].get("managedFields") or [_before_first_apply(live, current, writer)]
    others = [
        (entry, fields.from_fields_v1(entry.get("fieldsV1", {})))
        for entry in managers
        if not writer.owns(entry)
    ]
    contested = {path for path, value in wanted.items() if path in current and current[path] != value}
    contested -= _formerly_applied(live, schema, writer)
    conflicts = [(entry, path) for entry, owned in others for path in sorted(owned & contested)]
    if conflicts and not force:
        raise conflict_error(conflicts)
    merged: Json = merge(live, applied, schema)
    own = [fields.from_fields_v1(entry.get("fieldsV1", {})) for entry in managers if writer.owns(entry)]
    for path in _abandoned(own, wanted, [owned for _, owned in others]):
        remove(merged, path)
    if merged == live and own == [set(wanted)]:
        # The same configuration again: not even the time of the apply is new.
        return merged
    merged["metadata"] = {**merged["metadata"], "managedFields": _entries(others, wanted, contested, writer)}
    return merged


def applied_object(applied: Json, schema: Json | None, writer: Writer, *, status_apart: bool) -> Json:
    """Give the object that an apply creates where there was none."""
    owned = {key: value for key, value in applied.items() if key != "status" or not status_apart}
    paths = set(fields.flatten(owned, schema))
    metadata = {**applied.get("metadata", {}), "managedFields": [writer.entry(paths)]}
    return {**applied, "metadata": metadata}


def track_update(old: Json, new: Json, schema: Json | None, writer: Writer) -> None:
    """Note in the new object which fields an update changed, if the object's fields are tracked at all."""
    entries = old["metadata"].get("managedFields")
    if not entries:
        return
    before, after = fields.flatten(old, schema), fields.flatten(new, schema)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = before.keys() - after.keys()
    own: set[Path] = set(changed)
    kept = []
    for entry in entries:
        owned = fields.from_fields_v1(entry.get("fieldsV1", {})) - gone
        if writer.owns(entry):
            own |= owned
            continue
        left = owned - changed
        if left:
            kept.append({**entry, "fieldsV1": fields.to_fields_v1(left)} if left != owned else entry)
    if own and (changed or gone):
        kept.append(writer.entry(own))
    new["metadata"]["managedFields"] = kept if changed or gone else entries


def merge(live: Any, applied: Any, schema: Json | None) -> Any:
    """Merge by structure: maps and keyed lists by their keys, sets as unions; the rest is replaced."""
    if isinstance(live, dict) and isinstance(applied, dict) and not fields.is_atomic_map(schema):
        result = dict(live)
        for key, value in applied.items():
            result[key] = merge(live.get(key), value, schemas.child(schema, key))
        return result
    if isinstance(live, list) and isinstance(applied, list):
        kind = fields.list_type(schema)
        if kind == "map":
            return _merge_keyed(live, applied, schema)
        if kind == "set":
            return [*live, *(item for item in applied if item not in live)]
    return applied


def _merge_keyed(live: list[Any], applied: list[Any], schema: Json | None) -> list[Any]:
    keys = fields.list_keys(schema)
    wanted = {fields.key_step(item, keys): item for item in applied}
    result = []
    for item in live:
        other = wanted.pop(fields.key_step(item, keys), None)
        result.append(item if other is None else merge(item, other, schemas.item(schema)))
    return result + list(wanted.values())


def remove(node: Any, path: Path) -> None:
    """Remove what a path leads to, if it is there."""
    *parents, last = path
    if last == ITEM:
        *parents, last = parents
    holders = [node]
    for step in parents:
        found = _step(holders[-1], step)
        if found is None:
            return
        holders.append(found)
    holder = holders[-1]
    if isinstance(holder, dict):
        holder.pop(last[2:], None)
    elif isinstance(holder, list):
        found = _step(holder, last)
        holder[:] = [item for item in holder if item is not found and item != found]


def _step(node: Any, step: str) -> Any:
    kind, rest = step[0], step[2:]
    if isinstance(node, dict) and kind == "f":
        return node.get(rest)
    if isinstance(node, list) and kind == "k":
        wanted = decode(rest)
        return next((item for item in node if fields.key_step(item, list(wanted)) == step), None)
    if isinstance(node, list) and kind == "v":
        value = decode(rest)
        return value if value in node else None
    return None


def _abandoned(own: list[set[Path]], wanted: Fields, others: list[set[Path]]) -> list[Path]:
    """Give what only this manager applied before and does not want now; items before their fields."""
    former: set[Path] = set().union(*own)
    shared: set[Path] = set().union(*others)
    wanted_below = {path[:length] for path in wanted for length in range(len(path))}
    left = former - wanted.keys() - shared
    return sorted(
        (path for path in left if path not in wanted_below), key=lambda path: (path[-1] != ITEM, path)
    )


def _entries(
    others: Iterable[tuple[Json, set[Path]]], wanted: Fields, contested: set[Path], writer: Writer
) -> list[Json]:
    kept = []
    for entry, owned in others:
        left = owned - contested
        if left:
            kept.append({**entry, "fieldsV1": fields.to_fields_v1(left)} if left != owned else entry)
    return [*kept, writer.entry(set(wanted))]


def _before_first_apply(live: Json, current: Fields, writer: Writer) -> Json:
    status = {path for path in current if path[:1] == ("f:status",)}
    owner = Writer(_BEFORE, "Update", str(live.get("apiVersion", "")), "", writer.now)
    return owner.entry(set(current) - status)


def _formerly_applied(live: Json, schema: Json | None, writer: Writer) -> set[Path]:
    # What kubectl applied from its own side before, it may change when it goes over to the server's side.
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    if not text or writer.manager != "kubectl":
        return set()
    return set(fields.flatten(decode(text), schema)) | {("f:metadata", "f:annotations", f"f:{_LAST_APPLIED}")}


def conflict_error(conflicts: list[tuple[Json, Path]]) -> ApiError:
    """Say who owns what, in upstream's words."""
    causes = []
    lines: dict[str, list[str]] = {}
    for entry, path in conflicts:
        through = f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
        using = f" using {entry['apiVersion']}" if entry.get("operation") == "Update" else ""
        message = f'conflict with "{entry["manager"]}"{through}{using}'
        causes.append({"reason": "FieldManagerConflict", "message": message, "field": fields.dotted(path)})
        lines.setdefault(message, []).append(fields.dotted(path))
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        listed = [
            f"{message}:" + "".join(f"\n- {path}" for path in paths) for message, paths in lines.items()
        ]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(listed)
    return ApiError(409, "Conflict", text, {"causes": causes})
