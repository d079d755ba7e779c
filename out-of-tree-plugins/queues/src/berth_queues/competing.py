"""Quotas of which one counts at a time: several may be for the same namespace, or have the same name."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from berth_sdk import ObjectKey

Q = TypeVar("Q")

log = logging.getLogger(__name__)


class CompetingQuotas(Generic[Q]):
    """Quotas as they are watched; of several that are for the same, the one whose key comes first counts.

    `for_and_by` splits an object's key: what the quota is for, and by what several for the same are ordered.
    """

    def __init__(
        self, read: Callable[[ObjectKey, bytes], Q], for_and_by: Callable[[ObjectKey], tuple[str, str]]
    ) -> None:
        self._read = read
        self._for_and_by = for_and_by
        self._all: dict[str, dict[str, Q]] = {}
        self.counting: dict[str, Q] = {}
        """The quota that counts, by what it is for."""

    def put(self, key: ObjectKey, source: bytes) -> bool:
        """Take over a quota; whether that changes what counts. One that can't be read is as good as none."""
        try:
            quota = self._read(key, source)
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("quota ignored quota=%s err=%s", f"{key.namespace}/{key.name}", error)
            return self.remove(key)
        purpose, place = self._for_and_by(key)
        self._all.setdefault(purpose, {})[place] = quota
        return self._choose(purpose)

    def remove(self, key: ObjectKey) -> bool:
        """Forget a quota; whether that changes what counts."""
        purpose, place = self._for_and_by(key)
        self._all.get(purpose, {}).pop(place, None)
        return self._choose(purpose)

    def clear(self) -> None:
        """Forget all of them."""
        self.counting.clear()
        self._all.clear()

    def all(self) -> list[Q]:
        """Return every quota that was read, those that do not count included."""
        return [quota for there in self._all.values() for quota in there.values()]

    def _choose(self, purpose: str) -> bool:
        there = self._all.get(purpose, {})
        if not there:
            self._all.pop(purpose, None)
        if len(there) > 1:
            log.warning("several quotas, the first counts for=%s counts=%s", purpose, min(there))
        before = self.counting.pop(purpose, None)
        chosen = there[min(there)] if there else None
        if chosen is not None:
            self.counting[purpose] = chosen
        return chosen != before
