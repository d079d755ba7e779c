"""Taints and tolerations.

Source: component-helpers scheduling/corev1 (Kubernetes v1.36).
"""

import re
from enum import StrEnum

from berth.objects.api_object import ApiObject
from berth.objects.label_selector import parse_int

_CANONICAL_INT = re.compile(r"(0|-?[1-9][0-9]*)\Z")


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(ApiObject, frozen=True):
    """A node's reason to keep pods away."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(ApiObject, frozen=True):
    """A pod's consent to a taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint, *, comparisons: bool = False) -> bool:
        """Whether the taint is covered; Lt and Gt only where `comparisons` (its feature gate) is on."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt" if comparisons:
                return self._compares(taint.value)
            case _:
                return False

    def reaches_beyond(self, other: "Toleration") -> bool:
        """Whether this covers all that another one of its key, operator and effect covers, and more."""
        limit, known = _integer(self.value), _integer(other.value)
        if self.operator not in ("Lt", "Gt") or limit is None:
            return False
        return known is None or (limit > known if self.operator == "Lt" else limit < known)

    def _compares(self, value: str) -> bool:
        left, right = _integer(value), _integer(self.value)
        if left is None or right is None:
            return False
        return left < right if self.operator == "Lt" else left > right


def _integer(value: str) -> int | None:
    return parse_int(value) if _CANONICAL_INT.match(value) else None
