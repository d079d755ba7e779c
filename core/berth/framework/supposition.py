"""A pod as it would be if it were written otherwise, for programs that are sent a pod's own JSON.

explain's trials carry it in the state of their attempt; plugins and extenders in other processes are sent it.
"""

from typing import Any
from uuid import uuid4

import msgspec

from berth.objects.pod import Pod


class Supposition:
    """The pod `before`, if it were written as `after`, under a UID of its own: it is no pod that there is."""

    def __init__(self, before: Pod, after: Pod) -> None:
        self.before = before
        self.after = after
        self.uid = str(uuid4())
        self._made: tuple[bytes, bytes] | None = None

    def object(self, known: bytes) -> bytes:
        """Its JSON: `known`, which the API server gave for the pod, with what is written otherwise.

        Fields that are not decoded here stay in it. Where nothing is known it has what is decoded.
        """
        if self._made is None or self._made[0] is not known:
            before, after = _document(self.before), _document(self.after)
            document = _changed(msgspec.json.decode(known) if known else before, before, after)
            document["metadata"] = {**document["metadata"], "uid": self.uid}
            self._made = known, msgspec.json.encode(document)
        return self._made[1]


def _document(pod: Pod) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(pod.written()))
    return document


def _changed(known: Any, before: Any, after: Any) -> Any:
    """The value with those parts exchanged in which `after` differs from `before`."""
    if before == after:
        return known
    if all(isinstance(each, dict) for each in (known, before, after)):
        kept = {key: value for key, value in known.items() if key in after or key not in before}
        return kept | {
            key: _changed(known.get(key), before.get(key), value)
            for key, value in after.items()
            if key not in before or before[key] != value
        }
    if all(isinstance(each, list) for each in (known, before, after)) and len(known) == len(before) == len(
        after
    ):
        return [_changed(*each) for each in zip(known, before, after, strict=True)]
    return after
