"""The pods that usually come, from a file: what FGD need not learn then.

A JSON list, an entry a kind of pod: `{"number": 310, "cpu": 4000, "count": 1, "milli": 460}`.
`number` is how many came, `cpu` thousandths of a core, `count` and `milli` the devices and the thousandths of
each, both 0 for pods without GPU; `models` is a list, left out where any is allowed.
"""

from collections import Counter
from pathlib import Path

import msgspec

from berth_gpu_share.contract import WHOLE, Demand


class WorkloadError(Exception):
    """The file can't be read or says what can't be; the text names it, and the place in it."""


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of pod, and how many of it came."""

    number: int
    cpu: int
    count: int = 0
    milli: int = 0
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        share = self.count == 1 and 0 < self.milli <= WHOLE
        if self.number < 1 or self.cpu < 0:
            raise ValueError("number is above 0, cpu not below")
        if not share and not (self.count > 1 and self.milli == WHOLE) and (self.count or self.milli):
            raise ValueError(f"{self.count} x {self.milli} milli: a share of one GPU, whole ones, or none")


def usual_pods(path: Path) -> Counter[Demand]:
    """Return how many pods came of each demand.

    Raises: WorkloadError.
    """
    try:
        kinds = msgspec.json.decode(path.read_bytes(), type=list[Kind])
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise WorkloadError(f"{path}: {error}") from error
    usual: Counter[Demand] = Counter()
    for kind in kinds:
        usual[Demand(kind.count, kind.milli, frozenset(kind.models), kind.cpu)] += kind.number
    return usual
