"""Label selectors, and the requirements that they and node selectors are made of.

Source: apimachinery pkg/labels (Kubernetes v1.36).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import repeat
from typing import NamedTuple

from berth.objects.api_object import ApiObject

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]\Z")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?\Z")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})\Z")
_MAX_PREFIX = 253
MAX_VALUES = 8_192
"""Labels and values in one selector: the API server sets no bound, and it is compiled in one go."""


class InvalidSelectorError(ValueError):
    """A selector that upstream refuses to parse, or one that is too large."""


class TooManyValuesError(InvalidSelectorError):
    """A selector that is too large."""


class Requirement(ApiObject, frozen=True):
    """One condition on one key: In, NotIn, Exists, DoesNotExist; Gt and Lt on nodes only."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the condition."""
        return self.matches_value(labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """Whether the key's value meets the condition; None stands for a missing key."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return _compares(self.operator, value, self.values[0])


def parse_int(text: str | None) -> int | None:
    """The text as Go's ParseInt reads it in base 10 and 64 bits, or None."""
    match = None if text is None else _INTEGER.match(text)
    if match is None:
        return None
    number = int("".join(match.groups()))
    return number if -(2**63) <= number < 2**63 else None


def _compares(operator: str, value: str | None, bound: str) -> bool:
    number, limit = parse_int(value), parse_int(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


class LabelSelector(ApiObject, frozen=True):
    """A metav1.LabelSelector: every label and every expression has to match."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class Selector:
    """A selector ready to match, equal to every other that asks the same.

    `empty` means that it asks nothing; a selector that matches nothing is not empty.
    """

    __slots__ = ("_hash", "_rules", "nothing", "requirements")

    def __init__(self, requirements: tuple[Requirement, ...] = (), *, nothing: bool = False) -> None:
        self.requirements = requirements
        self.nothing = nothing
        self._hash = hash((requirements, nothing))
        self._rules: tuple[ValueRule, ...] | None = None

    @property
    def empty(self) -> bool:
        """Whether it matches everything because it asks nothing."""
        return not self.requirements and not self.nothing

    @property
    def rules(self) -> "tuple[ValueRule, ...]":
        """The requirements, one rule for each key, worked out when first asked for."""
        if self._rules is None:
            self._rules = rules_of(self.requirements)
        return self._rules

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement. Cost: one step for each key."""
        return not self.nothing and allowed(self._rules or self.rules, labels)

    def and_also(self, more: tuple[Requirement, ...]) -> "Selector":
        """The selector with further requirements. Raises: TooManyValuesError."""
        _check_number(0, (*self.requirements, *more))
        return Selector(_canonical((*self.requirements, *more)), nothing=self.nothing)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Selector)
            and self.nothing == other.nothing
            and self.requirements == other.requirements
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Selector({self.requirements!r}, nothing={self.nothing})"


class ValueRule(NamedTuple):
    """All that a selector asks of one key, which `absent` lets be missing; `inside` None is any value."""

    key: str
    inside: Collection[str] | None
    outside: frozenset[str]
    absent: bool
    present: bool

    def allows(self, value: str | None) -> bool:
        """Whether the key's value meets the rule; None stands for a missing key."""
        if value is None:
            return self.absent
        return self.present and (self.inside is None or value in self.inside) and value not in self.outside


def allowed(rules: Iterable[ValueRule], labels: Mapping[str, str]) -> bool:
    """Whether the labels meet all rules."""
    # A loop, not `all`: a generator takes as long again for the one or two rules that most selectors have.
    # Nor a call of `allows`: there may be a hundred thousand.
    for key, inside, outside, absent, present in rules:
        value = labels.get(key)
        if value is None:
            if not absent:
                return False
        elif not present or value in outside or (inside is not None and value not in inside):
            return False
    return True


def rules_of(requirements: Iterable[Requirement]) -> tuple[ValueRule, ...]:
    """One rule for each key, which holds where all requirements on that key do; these are of labels."""
    requirements = tuple(requirements)
    if all(each.operator == "In" and len(each.values) == 1 for each in requirements):
        equal = {each.key: each.values for each in requirements}
        if len(equal) == len(requirements):
            parts = zip(equal, equal.values(), repeat(_NO_VALUES), repeat(False), repeat(True))
            return tuple(map(ValueRule._make, parts))
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement.key, []).append(requirement)
    return tuple([_rule(key, asked) for key, asked in by_key.items()])


def _rule(key: str, requirements: Iterable[Requirement]) -> ValueRule:
    inside: frozenset[str] | None = None
    outside: list[str] = []
    absent = present = True
    for requirement in requirements:
        match requirement.operator:
            case "In":
                absent = False
                values = requirement.values
                inside = frozenset(values) if inside is None else inside.intersection(values)
            case "NotIn":
                outside += requirement.values
            case "Exists":
                absent = False
            case _:
                present = False
    return ValueRule(key, inside, frozenset(outside) if outside else _NO_VALUES, absent, present)


_NO_VALUES: frozenset[str] = frozenset()
"""Shared: an empty set of its own would be most of what a rule takes."""


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None) -> Selector:
    """The selector ready to match; none at all matches nothing, an empty one everything.

    Raises: InvalidSelectorError where a label or an expression does not parse; TooManyValuesError.
    """
    if selector is None:
        return NOTHING
    _check_number(len(selector.match_labels), selector.match_expressions)
    labels, expressions = selector.match_labels, selector.match_expressions
    # At once, for there may be thousands; one by one where one is not sound.
    sound = all(_NAME.match(key) or is_qualified_name(key) for key in labels)
    sound = sound and all(map(_VALUE.match, labels.values()))
    for requirement in expressions if sound else (*_equal(labels), *expressions):
        check_requirement(requirement)
    return Selector(_canonical((*_equal(labels), *expressions))) if expressions else from_labels(labels)


def from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector that asks for exactly these labels. Raises: TooManyValuesError."""
    _check_number(len(labels))
    return Selector(_equal(dict(sorted(labels.items())))) if labels else EVERYTHING


def _check_number(labels: int, requirements: Iterable[Requirement] = ()) -> None:
    count = labels + sum([max(1, len(r.values)) for r in requirements])
    if count > MAX_VALUES:
        raise TooManyValuesError(f"found {count} labels and values; give at most {MAX_VALUES}")


def _equal(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(map(Requirement, labels, repeat("In"), zip(labels.values())))


def _canonical(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """The requirements in order, each once, and so are their values."""
    if len(requirements) == 1 and len(requirements[0].values) <= 1:
        return requirements
    in_order = {
        r if len(r.values) <= 1 else Requirement(r.key, r.operator, tuple(sorted(set(r.values))))
        for r in requirements
    }
    return tuple(sorted(in_order, key=lambda r: (r.key, r.operator, r.values)))


def check_requirement(requirement: Requirement, *, numeric: bool = False) -> None:
    """Refuse what upstream refuses to parse; Gt and Lt only where `numeric`.

    Raises: InvalidSelectorError naming key, operator and values.
    """
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator in ("In", "NotIn"):
        sound = len(values) > 0
    elif operator in ("Exists", "DoesNotExist"):
        sound = not values
    elif operator in ("Gt", "Lt") and numeric:
        sound = len(values) == 1 and parse_int(values[0]) is not None
    else:
        raise InvalidSelectorError(f'"{operator}" is not a valid label selector operator')
    if not sound:
        raise InvalidSelectorError(
            f"operator {operator} on key {key} does not take the values {list(values)}"
        )
    if not is_qualified_name(key):
        raise InvalidSelectorError(f"{key!r} is not a valid label key")
    if not all(map(_VALUE.match, values)):
        bad = next(value for value in values if not _VALUE.match(value))
        raise InvalidSelectorError(f"{bad!r} is not a valid label value for key {key}")


def is_qualified_name(name: str) -> bool:
    """Whether the text is a label key: an optional DNS prefix, a slash, a name of up to 63 characters."""
    prefix, slash, local = name.rpartition("/")
    if slash and not (len(prefix) <= _MAX_PREFIX and _PREFIX.match(prefix)):
        return False
    return bool(_NAME.match(local))


def is_label_value(value: str) -> bool:
    """Whether the text may stand as a label's value."""
    return bool(_VALUE.match(value))
