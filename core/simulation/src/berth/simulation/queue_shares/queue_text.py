"""Tables of the queues' use and waits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from berth.simulation.queue_shares.samples import QueueAmounts, QueueSample, QueueSummary, summarized
from berth.simulation.table_text import BYTES, MILLI, Cells, amount, side_by_side

MAX_QUEUES: Final = 50
AMOUNTS: Final = ("quota", "used", "at most", "fair share", "borrowed", "at most")
PODS: Final = ("placed", "waiting", "evicted", "mean wait, s", "longest, s")
GAP: Final = 3


def queue_lines(samples: Sequence[QueueSample]) -> Iterator[str]:
    """Each queue's use of each resource, as means over time, and the outcome of its pods."""
    queues = summarized(samples)
    if not queues:
        return
    yield ""
    seconds = samples[-1].at_seconds
    yield f"queues over {seconds:g} s, means over the time of {len(samples)} samples:"
    shown = dict(list(queues.items())[:MAX_QUEUES])
    yield from _table(("queue", "resource", *AMOUNTS), list(_amount_rows(shown)))
    if pods := [(name, "", *_pods(each)) for name, each in shown.items() if _has_pods(each)]:
        yield ""
        yield from _table(("queue", "", *PODS), pods)
    if len(queues) > MAX_QUEUES:
        yield f"  and {len(queues) - MAX_QUEUES} more queues; -o json has them all"


def queues_side_by_side(variants: Sequence[tuple[str, Mapping[str, QueueSummary]]]) -> Iterator[str]:
    """For each queue a row a variant, with what differs between them."""
    names = sorted({name for _, queues in variants for name in queues})
    divided = _divided(each for _, queues in variants for each in queues.values())
    for name in names[:MAX_QUEUES]:
        yield ""
        yield f"{name}:"
        yield from side_by_side(
            [(variant, _cells(queues.get(name), divided)) for variant, queues in variants]
        )
    if len(names) > MAX_QUEUES:
        yield f"and {len(names) - MAX_QUEUES} more queues; -o json has them all"


def _divided(queues: Iterable[QueueSummary]) -> set[str]:
    """The resources for which child queues have quotas; all, if there are none."""
    several = list(queues)
    named = {
        (name, bool(each.parent and has.quota)) for each in several for name, has in each.resources.items()
    }
    return {name for name, counts in named if counts} or {name for name, _ in named}


def _amount_rows(queues: Mapping[str, QueueSummary]) -> Iterator[tuple[str, ...]]:
    divided = _divided(queues.values())
    for name, each in queues.items():
        for resource in sorted(divided & each.resources.keys()):
            yield name, resource, *_amounts(resource, each.resources[resource])


def _has_pods(queue: QueueSummary) -> bool:
    return bool(queue.placed or queue.waiting or queue.evicted)


def _amounts(resource: str, has: QueueAmounts) -> tuple[str, ...]:
    """The cells below AMOUNTS."""
    quota, max_used, max_borrowed = (
        amount(resource, value) for value in (has.quota, has.max_used, has.max_borrowed)
    )
    used, share, borrowed = (_mean(resource, value) for value in (has.used, has.fair_share, has.borrowed))
    return quota, used, max_used, share, borrowed, max_borrowed


def _mean(resource: str, value: float) -> str:
    if resource in BYTES:
        return amount(resource, round(value))
    return f"{value / MILLI if resource == 'cpu' else value:.1f}"


def _pods(queue: QueueSummary) -> tuple[str, ...]:
    """The cells below PODS."""
    waits = (f"{queue.mean_wait_seconds:.1f}", f"{queue.longest_wait_seconds:.1f}")
    return str(queue.placed), str(queue.waiting), str(queue.evicted), *waits


def _cells(queue: QueueSummary | None, divided: set[str]) -> Cells:
    if queue is None:
        return {"placed": "no such queue"}
    cells = dict(zip(PODS, _pods(queue), strict=True)) if _has_pods(queue) else {}
    for resource in sorted(divided & queue.resources.keys()):
        quota, used, _, share, borrowed, _ = _amounts(resource, queue.resources[resource])
        named = {"quota": quota, "used": used, "fair share": share, "borrowed": borrowed}
        cells |= {f"{resource} {head}": value for head, value in named.items()}
    return cells


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows below their heads, the first two columns to the left."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        left = "".join(
            f"{cell:<{width + GAP}}" for cell, width in zip(row[:2], widths[:2], strict=True) if width
        )
        right = "".join(f"{cell:>{width + GAP}}" for cell, width in zip(row[2:], widths[2:], strict=True))
        yield f"{left}{right}".rstrip()
