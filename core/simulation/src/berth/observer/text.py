"""What came of a replay of a cluster's events, as lines for a terminal."""

from collections.abc import Iterator

from berth.observer.replay import SAME, ObservedReplay
from berth.simulation.text import difference_lines


def observed_lines(found: ObservedReplay) -> Iterator[str]:
    """The counts, and the first differences with the scores of both nodes."""
    yield f"recorded by {found.source}, {found.began} to {found.ended}"
    yield from (f"warning: {warning}" for warning in found.warnings)
    yield f"{found.events} events, {found.nodes} nodes at the end"
    yield f"of {found.compared} decisions, {found.different} would be different"
    for outcome, count in found.outcomes.items():
        if outcome != SAME:
            yield f"  {count:>7}  {outcome}"
    for reason, count in found.not_compared.items():
        yield f"not compared: {count} {reason}"
    yield from difference_lines(found.differences, found.different)
