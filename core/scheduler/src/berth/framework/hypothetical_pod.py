"""A modified copy of a pod, for sidecars and extenders, which are sent a pod's JSON.

explain's trials carry it in the state of their attempt.
"""

from typing import Any
from uuid import uuid4

import msgspec

from berth.objects.pods.pod import Pod


class HypotheticalPod:
    """The pod `before` with the changes that lead to `after`, and a UID of its own: no such pod exists."""

    def __init__(self, before: Pod, after: Pod) -> None:
        self.before = before
        self.after = after
        self.uid = str(uuid4())
        self._made: tuple[bytes, bytes] | None = None

    def object(self, known: bytes) -> bytes:
        """Its JSON: the API server's JSON of the pod (`known`) with the changes applied.

        Fields that Berth does not decode are kept. Without `known`, it has the decoded fields alone.
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
    """The value with the changes from `before` to `after` applied."""
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
