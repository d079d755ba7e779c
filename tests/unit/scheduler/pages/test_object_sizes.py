"""Sizes of containers are found wherever they are held, and count once."""

import asyncio
import json
from collections import OrderedDict, deque
from functools import partial
from types import SimpleNamespace

import numpy as np

from berth.queue.pools.unschedulable_pods import UnschedulablePods
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.pages.object_sizes import SizesPage, sizes
from berth.snapshot.journal import Journal
from berth.testing.builders import make_pod


class Held:
    """An object of ours with one attribute."""

    __module__ = "berth.somewhere"

    def __init__(self, value):
        self.value = value


class Slotted:
    """The same without a dictionary, its slot private."""

    __module__ = "berth.somewhere"
    __slots__ = ("__value",)

    def __init__(self, value):
        self.__value = value


def held(value):
    """The sizes of a holder, without what functions remember."""
    return {place: size for place, size in sizes(Held(value)).items() if not place.endswith("()")}


def test_containers_count_their_entries():
    for container in ([1, 2], {1, 2}, frozenset((1, 2)), {1: 2, 3: 4}, deque([1, 2]), OrderedDict(a=1, b=2)):
        assert held(container) == {"value": 2}


def test_arrays_count_their_bytes():
    assert held(np.zeros(10, dtype=np.int64)) == {"value": 80}


def test_containers_of_one_place_count_together():
    assert held({"a": [1], "b": [1, 2]}) == {"value": 2, "value[]": 3}


def test_slots_closures_methods_and_partial_calls_are_followed():
    inner = [1, 2, 3]

    def closing():
        return inner

    for holder in (closing, Held(inner).__init__, partial(print, inner), (inner,)):
        assert 3 in held(holder).values()
    assert held(Slotted(inner)) == {"value._Slotted__value": 3}


def test_an_object_counts_once_and_circles_end():
    one = [1]
    circle = Held([one, one])
    circle.value.append(circle)

    assert held(circle) == {"value.value": 3, "value.value[]": 1}


def test_api_objects_and_objects_of_others_are_not_looked_into():
    pod = make_pod("p", labels={"a": "b", "c": "d"})

    assert held([pod]) == {"value": 1}
    assert held(SimpleNamespace(entries=[1])) == {}


def test_what_the_core_is_made_of_is_seen():
    pool, journal = UnschedulablePods(), Journal()
    journal.note("x")

    assert held(pool) == {"value._groups": 0, "value._places": 0}
    assert held(journal)["value._kept"] == 1


async def test_the_page_waits_for_the_turn_to_end():
    turn = asyncio.Lock()
    page = SizesPage(Held([1]), turn, LoopTurns(asyncio.get_running_loop()))
    await turn.acquire()
    asked = asyncio.create_task(page.answer(None))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not asked.done()
    turn.release()

    answer = json.loads((await asked).body)
    assert answer["value"] == 1
    assert list(answer) == sorted(answer)
