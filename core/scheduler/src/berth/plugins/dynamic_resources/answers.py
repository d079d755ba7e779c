"""What searches found, kept for pods that ask the same: with claims of one template, say.

    asks --KnownAnswers--> DeviceAnswers: for each view, what was found
                             | a view is asked about again once the use of its pools changed
                             +-- shape and state of the view known? as found for another one of these
                             +-- else a search

A search sees devices only by what the asks tell apart, their order, and what of them is in use: views that
are equal in all that have the same solution, place by place. Values that constraints compare are told apart
within a view only. What ends in an error, or before its end, is not kept: texts name the claim.
"""

from collections.abc import Hashable, Sequence
from itertools import compress
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from berth.cel import Look
from berth.objects.steps import Steps
from berth.plugins.dynamic_resources.allocator import Solution
from berth.plugins.dynamic_resources.asking import Ask, ClaimAsk
from berth.plugins.dynamic_resources.capacity import CapacityError, Consumed
from berth.plugins.dynamic_resources.constraints import constraint_states
from berth.plugins.dynamic_resources.device_values import Values
from berth.plugins.dynamic_resources.devices import Device, DeviceKind, DeviceSelectorError
from berth.plugins.dynamic_resources.inventory import Inventory, PoolPart, ReachableDevices, Shape
from berth.plugins.dynamic_resources.picking import Pick
from berth.plugins.dynamic_resources.supply import Supply
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.growing import Ints

MAX_BYTES = 32 << 20
"""For all questions of a profile together."""
FOUND_BYTES = 1024
"""About how much memory one outcome takes, with the state that it is for."""
VIEW_BYTES = 256
TRAIT_BYTES = 256
SPARE = 1024
"""Outcomes are dropped once there are so many more than two for each view."""

NO_SOLUTION = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"

ALTERNATIVES = 8
"""A request has at most that many; the first is worth that much."""


class PlacedPick(NamedTuple):
    """A device for a request, by its place among the usable ones of a view."""

    ask: Ask
    place: int
    taken: Consumed | None


class Found(NamedTuple):
    """The outcome for views of one shape in one state: the reason's place in REASONS, or picks by claim."""

    reason: int
    picks: tuple[tuple[PlacedPick, ...], ...] = ()
    preference: int = 0
    """What the chosen alternatives are worth: more for those named first."""

    def solution(self, view: ReachableDevices) -> Solution:
        """The same with the view's devices."""
        return [
            [Pick(claim, pick.ask, view.usable[pick.place], pick.taken, ()) for pick in picks]
            for claim, picks in enumerate(self.picks)
        ]


UNANSWERED = Found(0)
"""The first one of every table, for views that were not asked about."""
NO_DEVICES, INVALID = Found(1), Found(2)
REASONS = ("", NO_SOLUTION, INVALID_POOLS)


def found(solution: Solution, view: ReachableDevices) -> Found:
    """The outcome of a search that found something."""
    place = {device.id: i for i, device in enumerate(view.usable)}
    chosen = {(pick.claim, pick.ask.request): pick.ask.position for picks in solution for pick in picks}
    return Found(
        0,
        tuple(
            tuple(PlacedPick(pick.ask, place[pick.device.id], pick.taken) for pick in picks)
            for picks in solution
        ),
        sum(ALTERNATIVES - position for position in chosen.values() if position is not None),
    )


class Trait(NamedTuple):
    """What asks can tell of devices of a kind, and their values of the constraints' attributes.

    `selected` says whether some selector holds, or fails.
    """

    selected: bool
    all: Hashable
    values: tuple[Values | None, ...]


class DeviceAnswers:
    """What was found for one question, by view.

    Shapes, all int64 (views,): of_view, places in `table`, 0 where a view is to be asked about; reasons,
    places in REASONS; preferences.
    """

    def __init__(self, asks: Sequence[ClaimAsk], supply: Supply) -> None:
        alternatives = [ask for claim in asks for request in claim.requests for ask in request]
        # What asks tell of a device besides their selectors: equal ones are looked at once.
        self._terms = list(
            {(ask.tolerations, tuple(sorted(ask.capacity.items()))): ask for ask in alternatives}.values()
        )
        self._selectors = list(dict.fromkeys(ask.selectors for ask in alternatives))
        self.prefers = any(ask.position is not None for ask in alternatives)
        """Whether what is found may be worth more on one node than on another."""
        self._derived = list(dict.fromkeys(each for ask in alternatives for each in ask.derived.values()))
        if not supply.features.derived_attributes:
            self._derived = []
        self._constraints = [
            (constraint, derived)
            for claim in asks
            for constraint in constraint_states(claim.constraints, supply.features)
            for derived in constraint.ways(ask for request in claim.requests for ask in request)
        ]
        self._traits: WeakKeyDictionary[DeviceKind, Trait] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[Shape, int] = WeakKeyDictionary()
        self._kept: WeakKeyDictionary[Shape, tuple[bool, ...]] = WeakKeyDictionary()
        self._inventory: Inventory | None = None
        self._clear()

    def _clear(self) -> None:
        self._alike: dict[Hashable, int] = {}
        self._numbers.clear()
        self._known: dict[Hashable, int] = {}
        self.table: list[Found] = [UNANSWERED]
        self._size_for(0)

    def _size_for(self, views: int) -> None:
        self.of_view: Ints = np.zeros(views, dtype=np.int64)
        self.reasons: Ints = np.zeros(views, dtype=np.int64)
        self.preferences: Ints = np.zeros(views, dtype=np.int64)
        self._asked_at: Ints = np.zeros(views, dtype=np.int64)
        self.reduced: dict[int, ReachableDevices] = {}
        """The views that are searched, without pools of which nothing is selected, by the views' numbers."""
        self._views: dict[tuple[PoolPart, ...], ReachableDevices] = {}
        self._keys: dict[ReachableDevices, tuple[int, Hashable]] = {}

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        found = FOUND_BYTES * len(self.table) + VIEW_BYTES * self.of_view.size
        return found + TRAIT_BYTES * len(self._traits)

    def refresh(self, supply: Supply) -> None:
        """Drop what was found for views that changed since."""
        views = len(supply.inventory.views)
        if len(self.table) > SPARE + 2 * views:
            self._clear()
        if self._inventory is not supply.inventory or self.of_view.size != views:
            self._inventory = supply.inventory
            self._size_for(views)
        self.of_view[supply.changed_at() > self._asked_at] = 0

    def key(self, supply: Supply, view: int, look: Look) -> Steps[Hashable]:
        """Equal for views with one outcome, in steps; `reduced` has the view then.

        Raises: what `look` raises.
        """
        searched = self.reduced.get(view)
        if searched is None:
            searched = yield from self._reduced(supply, supply.inventory.view(view), look)
            self.reduced[view] = searched
        changes, key = self._keys.get(searched, (0, None))
        if changes != supply.changes:
            number = self._numbers.get(searched.shape)
            if number is None:
                number = yield from self._described(supply, searched, look)
                self._numbers[searched.shape] = number
            key = number, supply.state(searched)
            self._keys[searched] = supply.changes, key
        return key

    def _reduced(self, supply: Supply, view: ReachableDevices, look: Look) -> Steps[ReachableDevices]:
        """The view without pools of which no request selects anything; one with a problem stays."""
        kept = self._kept.get(view.shape)
        if kept is None:
            concerned = []
            for part in view.parts:
                concerned.append(bool(part.pool.problem))
                for device in () if part.pool.problem else part.devices:
                    selected, _, _ = yield from self._trait_of(supply, device, look)
                    concerned[-1] |= selected
            kept = self._kept[view.shape] = tuple(concerned)
        if all(kept):
            return view
        parts = tuple(compress(view.parts, kept))
        reduced = self._views.get(parts)
        if reduced is None:
            reduced = self._views[parts] = view.reduced_to(parts)
        return reduced

    def recall(self, key: Hashable, view: int, supply: Supply) -> bool:
        """Whether the outcome is known; the view has it then."""
        place = self._known.get(key)
        if place is None:
            return False
        outcome = self.table[place]
        self.of_view[view], self._asked_at[view] = place, supply.changes
        self.reasons[view], self.preferences[view] = outcome.reason, outcome.preference
        return True

    def learn(self, key: Hashable, outcome: Found) -> None:
        """Remember the outcome for that key."""
        self._known[key] = len(self.table)
        self.table.append(outcome)

    def _described(self, supply: Supply, view: ReachableDevices, look: Look) -> Steps[int]:
        """A number for all that the asks can tell of the view's devices."""
        seen: list[Hashable] = []
        names: list[dict[Hashable, int]] = [{} for _ in self._constraints]
        for device in view.usable:
            _, trait, values = yield from self._trait_of(supply, device, look)
            seen.append((trait, tuple(map(_renamed, values, names))) if values else trait)
        return self._alike.setdefault((view.shape.frame, tuple(seen)), len(self._alike))

    def _trait_of(self, supply: Supply, device: Device, look: Look) -> Steps[Trait]:
        known = self._traits.get(device.kind)
        if known is None:
            known = self._traits[device.kind] = self._trait(supply, device, look)
            yield
        return known

    def _trait(self, supply: Supply, device: Device, look: Look) -> Trait:
        trait: Hashable = device.kind
        selected = tuple(_selected(device, selectors, look) for selectors in self._selectors)
        if not device.spec.allow_multiple_allocations and not device.consumes:
            trait = (
                selected,
                tuple((supply.tolerated(ask, device), _fits(supply, ask, device)) for ask in self._terms),
                bool(device.spec.binding_conditions),
            )
        concerned = any(each is not False for each in selected)
        derives = {None: True} | {each: device.derives(each, look) for each in self._derived}
        values = tuple(
            constraint.values_of(device, derived) if derives[derived] else None
            for constraint, derived in self._constraints
        )
        return Trait(concerned, (trait, *derives.values()) if self._derived else trait, values)


def _selected(device: Device, selectors: tuple[str, ...], look: Look) -> bool | None:
    """Whether the selectors hold; None where one fails."""
    try:
        return device.matches_all(selectors, look)
    except DeviceSelectorError:
        return None


def _fits(supply: Supply, ask: Ask, device: Device) -> bool | None:
    """Whether the device has what is asked of its capacity; None where that cannot be counted."""
    try:
        return supply.takes(ask, device) is not None
    except CapacityError:
        return None


def _renamed(values: Values | None, names: dict[Hashable, int]) -> tuple[int, ...] | None:
    if values is None:
        return None
    return tuple(sorted(names.setdefault(value, len(names)) for value in values))


class KnownAnswers:
    """The answers of the questions that were asked last."""

    def __init__(self) -> None:
        self._entries: BoundedCache[Hashable, DeviceAnswers] = BoundedCache(MAX_BYTES)
        self._latest: Hashable = None
        """The key of the question that was asked last: its answers may have grown since."""

    def of(self, asks: Sequence[ClaimAsk], supply: Supply) -> DeviceAnswers:
        """The answers of that question: of claims of the same specs, and the same classes."""
        grown = self._entries.get(self._latest)
        if grown is not None:
            self._entries.put(self._latest, grown, grown.size_bytes)
        key = tuple((msgspec.msgpack.encode(ask.claim.spec), _classes(ask)) for ask in asks)
        known = self._entries.get(key)
        if known is None:
            known = DeviceAnswers(asks, supply)
            self._entries.put(key, known, known.size_bytes)
        self._latest = key
        return known


def _classes(ask: ClaimAsk) -> tuple[int, ...]:
    """The identities of the classes, which live as long as the answers that refer to them."""
    return tuple(id(each.device_class) for request in ask.requests for each in request)
