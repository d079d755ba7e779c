"""Finding what may match, both ways: selectors for labels, and labels for a selector.

Nearly every selector names a value for some key. Filed under such a pair, the few that can match are found
without asking all of them; the caller asks each candidate itself.
"""

from collections.abc import Hashable, Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar

from berth.objects.label_selector import Requirement, Selector

K = TypeVar("K", bound=Hashable)

Filed = dict[K, None]
ByValue = dict[str, Filed[K]]
MANY_VALUES = 64
"""A selector that names more values is not filed under each of them, but asked about all labels."""


def narrowest(selector: Selector) -> Requirement | None:
    """The requirement with the fewest values, one of which all that matches has; None where none is."""
    named = (r for r in selector.requirements if r.operator == "In")
    return min(named, key=lambda requirement: len(requirement.values), default=None)


def _filed_under(selector: Selector) -> Requirement | None:
    named = narrowest(selector)
    return None if named is None or len(named.values) > MANY_VALUES else named


class BySelector(Generic[K]):
    """Things with a selector, to be found by labels."""

    def __init__(self) -> None:
        self._by_key: dict[str, ByValue[K]] = {}
        self._others: Filed[K] = {}

    def add(self, thing: K, selector: Selector) -> None:
        """File the thing."""
        named = _filed_under(selector)
        if named is None:
            self._others[thing] = None
            return
        for value in named.values:
            _put_in(self._by_key, named.key, value, thing)

    def discard(self, thing: K, selector: Selector) -> None:
        """Take the thing out."""
        named = _filed_under(selector)
        if named is None:
            self._others.pop(thing, None)
            return
        for value in named.values:
            _take_out(self._by_key, named.key, value, thing)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[K]:
        """Each thing once whose selector may match the labels."""
        # A thing is filed under values of one key, so no two pairs of the labels have it both.
        found = (by_value.get(labels[key]) for key, by_value in _shared(self._by_key, labels))
        return chain(self._others, *(filed for filed in found if filed))


class ByLabels(Generic[K]):
    """Things with labels, to be found by a selector."""

    def __init__(self) -> None:
        self._by_key: dict[str, ByValue[K]] = {}
        self._all: Filed[K] = {}

    def add(self, thing: K, labels: Mapping[str, str]) -> None:
        """File the thing."""
        self._all[thing] = None
        for key, value in labels.items():
            _put_in(self._by_key, key, value, thing)

    def discard(self, thing: K, labels: Mapping[str, str]) -> None:
        """Take the thing out."""
        self._all.pop(thing, None)
        for key, value in labels.items():
            _take_out(self._by_key, key, value, thing)
        if len(labels) > len(self._by_key):
            self._by_key = dict(
                self._by_key
            )  # a dictionary that had many more keys keeps their room otherwise

    def candidates(self, selector: Selector) -> Iterator[K]:
        """Each thing once whose labels the selector may match."""
        named = narrowest(selector)
        if named is not None:
            by_value = self._by_key.get(named.key, {})
            return chain.from_iterable(by_value.get(value, ()) for value in dict.fromkeys(named.values))
        there = next((r for r in selector.requirements if r.operator == "Exists"), None)
        if there is not None:
            return chain.from_iterable(self._by_key.get(there.key, {}).values())
        return iter(self._all)


def _shared(by_key: dict[str, ByValue[K]], labels: Mapping[str, str]) -> Iterator[tuple[str, ByValue[K]]]:
    """What is filed under the keys of the labels. Cost: O(the smaller of the two)."""
    if len(labels) <= len(by_key):
        return ((key, by_key[key]) for key in labels if key in by_key)
    return ((key, by_value) for key, by_value in by_key.items() if key in labels)


def _put_in(by_key: dict[str, ByValue[K]], key: str, value: str, thing: K) -> None:
    by_key.setdefault(key, {}).setdefault(value, {})[thing] = None


def _take_out(by_key: dict[str, ByValue[K]], key: str, value: str, thing: K) -> None:
    by_value = by_key.get(key, {})
    filed = by_value.get(value)
    if filed is None:
        return
    filed.pop(thing, None)
    if not filed:
        del by_value[value]
        if not by_value:
            del by_key[key]
