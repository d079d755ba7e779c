"""A revision of an owner of pods: replicas, template, and rollout strategy.

    trace --simkube--> Revision --inputs--> admitted, typed --workloads--> pods that come and go

Called by: simkube, inputs, workloads.
"""

import re
from enum import Enum
from typing import Any, Final

import msgspec

from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError

Document = dict[str, Any]
DAEMON_SET: Final = "DaemonSet"
MAX_PODS: Final = 1_000_000
"""Of one trace."""
_HUNDRED: Final = 100
_PERCENT: Final = re.compile(r"([0-9]{1,4})%", re.ASCII)


class Replacing(Enum):
    """How pods of an older template leave."""

    NEVER = "never"
    ALL_AT_ONCE = "all at once"
    ROLLING = "rolling"


class PodShare(msgspec.Struct, frozen=True):
    """A number of pods, or a percentage."""

    amount: int
    percent: bool = False

    def of(self, pods: int, *, up: bool) -> int:
        """The number of pods of that many, rounded up or down."""
        if not self.percent:
            return self.amount
        return -(-self.amount * pods // _HUNDRED) if up else self.amount * pods // _HUNDRED


class Rollout(msgspec.Struct, frozen=True):
    """The rollout strategy: `maxSurge` and `maxUnavailable`."""

    replacing: Replacing = Replacing.ROLLING
    surge: PodShare = PodShare(0)
    unavailable: PodShare = PodShare(1)


NEVER: Final = Rollout(Replacing.NEVER)
ALL_AT_ONCE: Final = Rollout(Replacing.ALL_AT_ONCE)


class Revision(msgspec.Struct, frozen=True):
    """An owner from the time `at` on. Units: seconds after the beginning.

    `template` is None once it is deleted; `pod` is a pod of the template, admitted. `durations` say how long
    its pods run, by their place among them; those are repeated, and None stands for ever.
    """

    kind: str
    key: str
    at: float
    template: Document | None = None
    replicas: int = 0
    durations: tuple[float | None, ...] = ()
    rollout: Rollout = NEVER
    pod: Pod | None = None

    @property
    def owner(self) -> str:
        """The owner's kind and key."""
        return f"{self.kind} {self.key}"


def read_rollout(kind: str, spec: Document, where: str) -> Rollout:
    """How an owner of that kind and spec replaces its pods. Raises: InputError."""
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    strategy = _fields(spec, field, where)
    given, rolling = strategy.get("type"), _fields(strategy, "rollingUpdate", f"{where}.{field}")
    if kind == "ReplicaSet" or given == "OnDelete":
        return NEVER
    if given == "Recreate":
        return ALL_AT_ONCE
    if given not in (None, "", "RollingUpdate"):
        raise InputError(f"{where}.{field}.type: found {str(given)[:60]!r}; RollingUpdate is expected")
    where = f"{where}.{field}.rollingUpdate"
    usual = PodShare(25, percent=True) if kind == "Deployment" else PodShare(1)
    surge = _part(rolling, "maxSurge", usual if kind == "Deployment" else PodShare(0), where)
    unavailable = _part(rolling, "maxUnavailable", usual, where)
    if kind == DAEMON_SET and surge.amount:
        return Rollout(unavailable=surge)
    return Rollout(surge=surge, unavailable=unavailable)


def _fields(document: Document, field: str, where: str) -> Document:
    """The field's object, empty where it is absent. Raises: InputError."""
    found = document.get(field) or {}
    if not isinstance(found, dict):
        raise InputError(f"{where}.{field}: found {str(found)[:60]!r}; an object is expected")
    return found


def _part(rolling: Document, field: str, usual: PodShare, where: str) -> PodShare:
    value = rolling.get(field)
    if value is None:
        return usual
    if isinstance(value, int) and 0 <= value <= MAX_PODS:
        return PodShare(value)
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        said = "a number such as 1 or a part such as 25% is expected"
        raise InputError(f"{where}.{field}: found {str(value)[:60]!r}; {said}")
    return PodShare(int(found[1]), percent=True)
