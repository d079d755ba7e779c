"""Finding what may match, both ways: selectors for labels, and labels for a selector.

Nearly every selector names a value for some key. Filed under such a pair, the few that can match are found
without asking all of them; whoever looks them up asks each candidate itself.
"""

from collections.abc import Hashable, Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar

from berth.objects.label_selector import Selector

K = TypeVar("K", bound=Hashable)

Pair = tuple[str, str]
Filed = dict[K, None]


def pairs_of(selector: Selector) -> list[Pair] | None:
    """Labels of which everything that the selector matches has exactly one; None where none can be named."""
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
    return None


class BySelector(Generic[K]):
    """Things with a selector, to be found by labels."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, Filed[K]] = {}
        self._others: Filed[K] = {}

    def add(self, thing: K, selector: Selector) -> None:
        """File the thing."""
        pairs = pairs_of(selector)
        if pairs is None:
            self._others[thing] = None
            return
        for pair in pairs:
            self._by_pair.setdefault(pair, {})[thing] = None

    def discard(self, thing: K, selector: Selector) -> None:
        """Take the thing out."""
        pairs = pairs_of(selector)
        if pairs is None:
            self._others.pop(thing, None)
            return
        for pair in pairs:
            _take_out(self._by_pair, pair, thing)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[K]:
        """Each thing once whose selector may match the labels."""
        # A thing is filed under values of one key, so no two pairs of the labels have it both.
        found = (self._by_pair.get(pair) for pair in labels.items())
        return chain(self._others, *(filed for filed in found if filed))


class ByLabels(Generic[K]):
    """Things with labels, to be found by a selector."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, Filed[K]] = {}
        self._all: Filed[K] = {}

    def add(self, thing: K, labels: Mapping[str, str]) -> None:
        """File the thing."""
        self._all[thing] = None
        for pair in labels.items():
            self._by_pair.setdefault(pair, {})[thing] = None

    def discard(self, thing: K, labels: Mapping[str, str]) -> None:
        """Take the thing out."""
        self._all.pop(thing, None)
        for pair in labels.items():
            _take_out(self._by_pair, pair, thing)

    def candidates(self, selector: Selector) -> Iterator[K]:
        """Each thing once whose labels the selector may match."""
        pairs = pairs_of(selector)
        if pairs is None:
            return iter(self._all)
        return chain.from_iterable(self._by_pair.get(pair, ()) for pair in pairs)


def _take_out(by_pair: dict[Pair, Filed[K]], pair: Pair, thing: K) -> None:
    filed = by_pair.get(pair)
    if filed is not None:
        filed.pop(thing, None)
        if not filed:
            del by_pair[pair]
