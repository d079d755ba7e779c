"""A plan, and what became of it, as text for a person."""

from collections.abc import Iterable, Iterator
from typing import Final

from berth.descheduling.eviction import FinishedMove
from berth.descheduling.plan import DeschedulePlan, LeftAlone, Move
from berth.framework.pluralize import pluralize

MAX_LEFT_ALONE: Final = 50


def plan_lines(plan: DeschedulePlan) -> Iterator[str]:
    """The moves in their order, strategies without any, then what is left alone; long lists are cut."""
    nodes, pods = pluralize(plan.nodes, "node"), pluralize(plan.pods, "pod")
    yield f"{nodes}, {pods}: {len(plan.moves)} to be evicted, {_stay(plan.left_alone)}"
    yield from (f"note: {note}" for note in plan.notes)
    yield from (f"failed: {failure}" for failure in plan.failures)
    for number, move in enumerate(plan.moves, 1):
        yield ""
        yield from _move_lines(number, move)
    if plan.idle:
        yield ""
        yield "nothing to do:"
    yield from (f"  {each.strategy}: {each.why}" for each in plan.idle)
    if plan.left_alone:
        yield ""
        yield "left alone:"
    for left in plan.left_alone[:MAX_LEFT_ALONE]:
        where = f" on {left.node}" if left.node else ""
        yield f"  {left.pod}{where} ({left.strategy}): {left.found}"
        yield f"      {left.why}"
    if len(plan.left_alone) > MAX_LEFT_ALONE:
        yield f"  and {len(plan.left_alone) - MAX_LEFT_ALONE} more; -o json has all"


def consolidation_lines(plan: DeschedulePlan) -> Iterator[str]:
    """What fits once which pods have moved, as a table, and what waits still."""
    room = {pod: node for move in plan.moves for pod, node in move.makes_room_for.items()}
    waiting = [left for left in plan.left_alone if not left.node]
    moved, fit = pluralize(len(plan.moves), "pod"), pluralize(len(room), "waiting pod")
    nodes, pods = pluralize(plan.nodes, "node"), pluralize(plan.pods, "pod")
    yield f"{nodes}, {pods}: {moved} to be moved, {fit} placed by it"
    yield from (f"note: {note}" for note in plan.notes)
    rows = [("move", "from", "to", "so that")]
    for move in plan.moves:
        to = " or ".join((move.to, *move.or_to))
        gets = ", ".join(f"{pod} fits on {node}" for pod, node in move.makes_room_for.items())
        rows.append((move.pod, move.from_, to, gets or "(with the next ones)"))
    if plan.moves:
        yield ""
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        for row in rows:
            yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))
    if waiting:
        yield ""
        yield "still waiting:"
    for left in waiting[:MAX_LEFT_ALONE]:
        yield f"  {left.pod}: {left.why}"
    if len(waiting) > MAX_LEFT_ALONE:
        yield f"  and {len(waiting) - MAX_LEFT_ALONE} more; -o json has all"


def done_lines(done: Iterable[FinishedMove]) -> Iterator[str]:
    """What became of each move."""
    for each in done:
        why = f": {each.message}" if each.message else ""
        yield f"{each.result.value.lower():<8} {each.pod} on {each.node}{why}"


def _stay(left: list[LeftAlone]) -> str:
    count = len({each.pod for each in left})
    return f"{count} that stands badly stays" if count == 1 else f"{count} that stand badly stay"


def _move_lines(number: int, move: Move) -> Iterator[str]:
    to = " or ".join((move.to, *move.or_to)) if move.to else "nowhere"
    yield f"{number}. {move.pod}: {move.from_} -> {to}"
    yield f"   {move.strategy}: {move.found}"
    yield f"   gain: {move.gain}"
    for pod, node in move.makes_room_for.items():
        yield f"   makes room for {pod} on {node}"
