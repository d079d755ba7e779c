"""The statuses of rejections, numbered, so that the filter results of a class are one column of numbers."""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import distinct
from berth.framework.interface import FilterPlugin, ReasonCodes
from berth.framework.status import PluginError, Status
from berth.snapshot.columns.growing import Ints

Numbers = NDArray[np.uint32]
"""Statuses by their numbers, 0 where there is none."""

SMALL = 1 << 12


class Reasons:
    """Numbers, from 1, for the statuses of one profile's Filter plugins, each with its plugin's position.

    Positions are those of Filter plugins in running order, from 1: of two that reject a node, the one at the
    lower position owns the rejection.
    """

    __slots__ = ("_number_of", "_place_of", "_places", "last_place", "statuses")

    def __init__(self) -> None:
        self.statuses: list[Status] = [Status()]
        self._places: list[int] = [0]
        self.last_place = 0
        """The highest place of a plugin that has a number."""
        self._place_of: Ints | None = None
        self._number_of: dict[tuple[int, Hashable], int] = {}

    def places(self, numbers: Numbers) -> Ints:
        """The places of the plugins that gave those statuses, 0 for none. Shapes: numbers and result (n,)."""
        if self._place_of is None or self._place_of.size != len(self._places):
            self._place_of = np.array(self._places, dtype=np.int64)
        return self._place_of[numbers]

    def number(
        self, place: int, plugin: FilterPlugin, state: CycleState, code: int, *, lasting: bool = True
    ) -> int:
        """The number of what the plugin's code stands for, in this cycle or, if that is `lasting`, in all.

        Raises: PluginError where it does not stand for a rejection.
        """
        # The codes of a sidecar have their meaning in one cycle alone.
        lasting = lasting and plugin.in_process
        key = place, code if lasting else _spelled(plugin, state, code)
        known = self._number_of.get(key)
        if known is None:
            known = self._number_of[key] = len(self.statuses)
            self.statuses.append(_spelled(plugin, state, code))
            self._places.append(place)
            self.last_place = max(self.last_place, place)
        return known

    def numbers(
        self,
        place: int,
        plugin: FilterPlugin,
        state: CycleState,
        codes: ReasonCodes,
        *,
        lasting: bool = True,
    ) -> Numbers:
        """The same for codes, at least one, none of which is 0. Shapes: codes and result (k,)."""
        first = int(codes.item(0))
        kinds = [first] if not np.count_nonzero(codes != first) else distinct(codes)
        numbered = [self.number(place, plugin, state, code, lasting=lasting) for code in kinds]
        if len(kinds) == 1:
            return np.full(codes.shape, numbered[0], dtype=np.uint32)
        if max(kinds) < SMALL:
            table = np.zeros(max(kinds) + 1, dtype=np.uint32)
            table[kinds] = numbered
            return table[codes]
        number_of = dict(zip(kinds, numbered, strict=True))
        return np.array([number_of[code] for code in codes.tolist()], dtype=np.uint32)


def _spelled(plugin: FilterPlugin, state: CycleState, code: int) -> Status:
    try:
        status = plugin.filter_status(state, code)
    except PluginError:
        raise
    except Exception as error:
        raise filter_error(plugin, error) from error
    if not status.rejected:
        raise filter_error(plugin, status.message)
    return status if status.plugin == plugin.name else status.from_plugin(plugin.name)


def filter_error(plugin: FilterPlugin, error: BaseException | str) -> PluginError:
    """The error that ends the cycle when a Filter plugin fails, with upstream's text."""
    return PluginError(f'running "{plugin.name}" filter plugin: {error}')
