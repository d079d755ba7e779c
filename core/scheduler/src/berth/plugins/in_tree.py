"""What all in-tree plugins share: how they are made, and the codes of those with a single reason."""

from functools import lru_cache
from typing import Any

import numpy as np

from berth.framework.handle import Handle
from berth.framework.interface import Plugin, ReasonCodes
from berth.snapshot.columns.growing import Mask


class InTreePlugin(Plugin):
    """A plugin made from its typed arguments and its profile's handle."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle


@lru_cache(maxsize=64)
def all_pass(n: int) -> ReasonCodes:
    """Codes that turn no node down: one read-only array for each size.

    Shapes: result uint8 (n,).
    """
    codes = np.zeros(n, dtype=np.uint8)
    codes.flags.writeable = False
    return codes


def first_reason(rejected: Mask) -> ReasonCodes:
    """Code 1 where a node is turned down, without a copy.

    Shapes: rejected bool (n,); result uint8 (n,).
    """
    return rejected.view(np.uint8)
