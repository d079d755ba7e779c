"""What plugins remember of one pod between extension points of one attempt.

Source: pkg/scheduler/framework/cycle_state.go (Kubernetes v1.36).
"""

import copy
from collections.abc import Mapping
from itertools import islice
from typing import Any, TypeVar

from berth.framework.attempts.cycle_budget import UNMETERED, CycleMeter

T = TypeVar("T")


class CycleState:
    """Values by key, and which plugins sit this cycle out.

    It lives from the scheduling cycle to the end of the binding cycle and is never used for another attempt.
    """

    __slots__ = (
        "_values",
        "binding_annotations",
        "meter",
        "parallel_pre_bind",
        "pods_to_activate",
        "skip_filter",
        "skip_post_filter",
        "skip_pre_bind",
        "skip_score",
    )

    def __init__(self, meter: CycleMeter = UNMETERED) -> None:
        self.meter = meter
        """What the cycle has used of its budget of CPU."""
        self._values: dict[Any, Any] = {}
        self.skip_filter: frozenset[str] = frozenset()
        self.skip_score: frozenset[str] = frozenset()
        self.skip_pre_bind: frozenset[str] = frozenset()
        self.parallel_pre_bind: frozenset[str] = frozenset()
        self.skip_post_filter = False
        self.pods_to_activate: dict[str, Any] = {}
        self.binding_annotations: dict[str, str] = {}
        """What the binding writes to the pod along with its node."""

    def write(self, key: Any, value: Any) -> None:
        """Remember a value."""
        self._values[key] = value

    def read(self, key: type[T]) -> T:
        """The value whose type is the key.

        Raises: KeyError where nothing was written.
        """
        value: T = self._values[key]
        return value

    def get(self, key: Any, default: Any = None) -> Any:
        """The value under the key, or the default."""
        return self._values.get(key, default)

    def delete(self, key: Any) -> None:
        """Forget a value."""
        self._values.pop(key, None)

    def __len__(self) -> int:
        return len(self._values)

    def written_since(self, count: int) -> dict[Any, Any]:
        """The values under the keys that came after the first `count`."""
        return dict(islice(self._values.items(), count, None))

    def take_over(self, values: Mapping[Any, Any]) -> None:
        """Remember values that were written in the cycle of an equal pod."""
        self._values.update(values)

    def start_over(self, count: int) -> None:
        """Forget all but the first `count` values, and who sits this cycle out."""
        self._values = dict(islice(self._values.items(), count))
        self.skip_filter = self.skip_score = frozenset()

    def clone(self) -> "CycleState":
        """A state for a simulation: values that have a `clone` copied by it, all others shared."""
        twin = copy.copy(self)
        values = {k: v.clone() if hasattr(v, "clone") else v for k, v in self._values.items()}
        twin._values = values  # noqa: SLF001 - a copy of this very class
        return twin
