"""Finding what may match, both ways: selectors for labels, and labels for a selector.

Nearly every selector names a value for some key. Filed under such a pair, the few that can match are found
without asking all of them.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from berth.objects.label_selector import ValueRule, allowed

K = TypeVar("K", bound=Hashable)

Filed = dict[K, None]
ByValue = dict[str, Filed[K]]
NOTHING: Mapping[Any, None] = {}
MANY_VALUES = 64
"""What names more values is not filed under each of them, but asked about all labels."""
MANY_LABELS = 1_024
"""What has more labels is not filed under each of them, but each rule is looked up among its labels."""


def _narrowest(rules: Iterable[ValueRule]) -> tuple[str, Collection[str]] | None:
    """The key with the fewest values, one of which all that matches has; None where none is named."""
    best: tuple[str, Collection[str]] | None = None
    for rule in rules:
        if rule.inside is not None and (best is None or len(rule.inside) < len(best[1])):
            best = rule.key, rule.inside
            if len(rule.inside) <= 1:
                break
    return best


class BySelector(Generic[K]):
    """Things with a selector's rules, to be found by labels."""

    def __init__(self) -> None:
        self._by_key: dict[str, ByValue[K]] = {}
        self._others: Filed[K] = {}

    def add(self, thing: K, rules: Sequence[ValueRule]) -> None:
        """File the thing."""
        named = _narrowest(rules)
        if named is None or len(named[1]) > MANY_VALUES:
            self._others[thing] = None
            return
        for value in named[1]:
            _put_in(self._by_key, named[0], value, thing)

    def discard(self, thing: K, rules: Sequence[ValueRule]) -> None:
        """Take the thing out."""
        named = _narrowest(rules)
        if named is None or len(named[1]) > MANY_VALUES:
            self._others.pop(thing, None)
            return
        for value in named[1]:
            _take_out(self._by_key, named[0], value, thing)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[K]:
        """Each thing once whose rules the labels may meet; the caller asks it."""
        # A thing is filed under values of one key, so no two pairs of the labels have it both.
        by_key = self._by_key
        keys = labels if len(labels) <= len(by_key) else by_key
        found = [by_key[key].get(labels[key], NOTHING) for key in keys if key in by_key and key in labels]
        return chain(self._others, *found)


class ByLabels(Generic[K]):
    """Things with labels, to be found by a selector's rules; all with more than `many_labels` are asked."""

    def __init__(self, many_labels: int = MANY_LABELS) -> None:
        self._many_labels = many_labels
        self._by_key: dict[str, ByValue[K]] = {}
        self._labels: dict[K, Mapping[str, str]] = {}
        self._large: Filed[K] = {}

    def add(self, thing: K, labels: Mapping[str, str]) -> None:
        """File the thing. Cost: O(labels), up to a bound."""
        self._labels[thing] = labels
        if len(labels) > self._many_labels:
            self._large[thing] = None
            return
        for key, value in labels.items():
            _put_in(self._by_key, key, value, thing)

    def discard(self, thing: K) -> None:
        """Take the thing out."""
        labels = self._labels.pop(thing)
        if len(labels) > self._many_labels:
            del self._large[thing]
            return
        for key, value in labels.items():
            _take_out(self._by_key, key, value, thing)
        if len(labels) > len(self._by_key):
            # A dictionary that had many more keys keeps their room otherwise.
            self._by_key = dict(self._by_key)

    def matching(self, rules: Sequence[ValueRule]) -> Iterable[K]:
        """Each thing once whose labels meet all rules.

        Cost: O(values of the rules + labels of the things); a rule about a key that no thing has is one step,
        and one for each thing of many labels.
        """
        demanding = [rule for rule in rules if not rule.absent]
        found = [thing for thing in self._candidates(demanding) if allowed(demanding, self._labels[thing])]
        if len(demanding) == len(rules):
            return found
        left = dict.fromkeys(found)
        for thing in self._large:
            if thing in left and not allowed(rules, self._labels[thing]):
                del left[thing]
        for rule in rules:
            if rule.absent and rule.key in self._by_key:
                for value, filed in self._by_key[rule.key].items():
                    if not rule.allows(value):
                        for thing in filed:
                            left.pop(thing, None)
        return left

    def _candidates(self, demanding: Sequence[ValueRule]) -> Iterable[K]:
        """The things that may meet rules each of which asks for a label."""
        if not demanding:
            return self._labels
        named = _narrowest(demanding)
        if named is None:
            return chain(self._large, *self._by_key.get(demanding[0].key, {}).values())
        by_value = self._by_key.get(named[0])
        if by_value is None:
            return self._large
        return chain(self._large, *[by_value[value] for value in named[1] if value in by_value])


def _put_in(by_key: dict[str, ByValue[K]], key: str, value: str, thing: K) -> None:
    by_value = by_key.get(key)
    if by_value is None:
        by_value = by_key[key] = {}
    if value in by_value:
        by_value[value][thing] = None
    else:
        by_value[value] = {thing: None}


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
