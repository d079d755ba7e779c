"""How large every container is that a scheduler holds: `/debug/sizes`, guarded as `/debug/cache` is.

What grows without end is found by asking twice: a map that is keyed by something that users choose, and from
which nothing is dropped, has more entries each time.

The objects are walked from the parts of the process along their attributes. Containers of one place count
together: `snapshot._columns.labels._columns` is how many label columns there are, and
`snapshot._columns.labels._columns[].values` how many values all of them have.
"""

import asyncio
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import msgspec
import numpy as np
from aiohttp import web

from berth.scheduler.loop.loop_turns import LoopTurns

OURS = "berth"
COUNTED = (dict, list, set, frozenset, deque)
"""Tuples are values: whatever has one does not add to it."""
FOLLOWED = (FunctionType, MethodType, partial, tuple)
LEAVES = (str, bytes, int, float, bool, type, type(None), msgspec.Struct)
"""API objects are counted by what holds them, and not looked into."""


class _Place(NamedTuple):
    path: str
    thing: Any


def sizes(root: Any) -> dict[str, int]:
    """Entries of containers, and bytes of arrays, by the place in which they stand.

    Each object counts once, in the place that is nearest to the root. Cost: O(objects), API objects aside.
    """
    found: Counter[str] = Counter()
    seen = {id(root)}
    # Everything that was seen stays alive, or its number could be given to another object.
    places = deque([_Place("", root)])
    kept = []
    while places:
        place = places.popleft()
        kept.append(place.thing)
        size = _size(place.thing)
        if size is not None:
            found[place.path] += size
        for inner in _inside(place):
            if id(inner.thing) not in seen and not isinstance(inner.thing, LEAVES):
                seen.add(id(inner.thing))
                places.append(inner)
    return dict(found) | _cached_answers()


def _size(thing: Any) -> int | None:
    if isinstance(thing, COUNTED):
        return len(thing)
    return int(thing.nbytes) if isinstance(thing, np.ndarray) else None


def _inside(place: _Place) -> Iterator[_Place]:
    path, thing = place
    if isinstance(thing, COUNTED):
        yield from _elements(path, thing)
    elif isinstance(thing, FOLLOWED):
        yield from (_Place(path, part) for part in _bound(thing))
    elif type(thing).__module__.partition(".")[0] == OURS:
        for name, value in _attributes(thing):
            yield _Place(f"{path}.{name}" if path else name, value)
    elif isinstance(thing, asyncio.Queue):
        yield _Place(path, thing._queue)  # type: ignore[attr-defined]  # noqa: SLF001 - how much waits in it


def _elements(path: str, thing: Any) -> Iterator[_Place]:
    # Dictionaries and the like may change while tasks of other threads run; a copy is whole.
    if isinstance(thing, dict):
        for pair in list(thing.items()):
            yield from (_Place(f"{path}[]", part) for part in pair)
    else:
        yield from (_Place(f"{path}[]", part) for part in list(thing))


def _bound(thing: Any) -> Iterable[Any]:
    """What a function, a bound method, a partial call or a tuple holds."""
    if isinstance(thing, tuple):
        return thing
    if isinstance(thing, MethodType):
        return (thing.__self__, thing.__func__)
    if isinstance(thing, partial):
        return (thing.func, *thing.args, *thing.keywords.values())
    return [value for cell in thing.__closure__ or () if (value := _content(cell)) is not None]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # A name that was not bound yet.
        return None


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    names = {name for kind in type(thing).__mro__ for name in _slots(kind)}
    yield from ((name, getattr(thing, name)) for name in sorted(names) if hasattr(thing, name))
    yield from list(getattr(thing, "__dict__", {}).items())


def _slots(kind: type) -> Iterable[str]:
    slots: str | Iterable[str] = kind.__dict__.get("__slots__", ())
    named = (slots,) if isinstance(slots, str) else slots
    # Other slots, and the dictionary's own, hold nothing of ours.
    return (_mangled(kind, name) for name in named if name not in ("__dict__", "__weakref__"))


def _mangled(kind: type, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name


def _cached_answers() -> dict[str, int]:
    """How much each function of ours remembers that keeps its answers."""
    found = {}
    for name, module in list(sys.modules.items()):
        if module is None or name.partition(".")[0] != OURS:
            continue
        for function in list(vars(module).values()):
            info = getattr(function, "cache_info", None)
            if info is not None and getattr(function, "__module__", "") == name:
                found[f"{name}.{function.__name__}()"] = info().currsize
    return found


class SizesPage:
    """The page: sizes as JSON, taken by the scheduling loop between two pods."""

    def __init__(self, root: Any, turn: asyncio.Lock, turns: LoopTurns) -> None:
        self._root, self._turn, self._turns = root, turn, turns

    async def report(self) -> Mapping[str, int]:
        """The sizes, in the order of their names."""
        async with self._turn:
            return dict(sorted(sizes(self._root).items()))

    async def answer(self, _request: web.Request) -> web.Response:
        """GET of the page."""
        found = await self._turns.ask(self.report)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")
