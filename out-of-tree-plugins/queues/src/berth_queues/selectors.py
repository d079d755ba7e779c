"""Label selectors, as objects have them."""

from collections.abc import Mapping

import msgspec


class _Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case _:
                return value is None


class Selector(msgspec.Struct, rename="camel", frozen=True):
    """A label selector; an empty one selects nothing, as in a PodDisruptionBudget's use by preemption."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether all of it is met."""
        if not self.match_labels and not self.match_expressions:
            return False
        wanted = all(labels.get(key) == value for key, value in self.match_labels.items())
        return wanted and all(each.matches(labels) for each in self.match_expressions)
