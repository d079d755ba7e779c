"""What came of a replay, as lines to read."""

from collections.abc import Iterator

from berth.replay.replay_result import CallDifference, ReplayResult

CHANGES_SHOWN = 10


def as_text(outcome: ReplayResult, show: int = 20) -> str:
    """The report; so many differences are spelled out."""
    return "\n".join(_lines(outcome, show))


def _lines(outcome: ReplayResult, show: int) -> Iterator[str]:
    header = outcome.header
    began = header.began.ToDatetime().strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"{header.plugin} {outcome.version} at {outcome.address}"
    yield f"recorded with {header.plugin} {outcome.recorded_version} by berth {header.host_version}, {began}"
    yield from (f"warning: {warning}" for warning in outcome.warnings)
    for difference in outcome.differences[:show]:
        yield from _spelled(difference)
    if len(outcome.differences) > show:
        yield f"\n... and {len(outcome.differences) - show} more: --show or -o json has them"
    yield ""
    yield from _table(outcome)
    yield ""
    left_out = "".join(f", {count} left out ({why})" for why, count in sorted(outcome.left_out.items()))
    different = len(outcome.differences)
    yield f"{outcome.compared} calls compared: {outcome.same} same, {different} different{left_out}"


def _spelled(difference: CallDifference) -> Iterator[str]:
    whose = f" of {difference.pod}" if difference.pod else ""
    attempt = f", attempt {difference.attempt}" if difference.attempt else ""
    at = f", generation {difference.generation}" if difference.generation else ""
    yield f"\n{difference.call}{whose}{attempt}{at}"
    for change in difference.changes[:CHANGES_SHOWN]:
        yield f"  {change.kind} {change.name}".rstrip() + f": was {change.was}, is {change.now}"
    if left := max(0, len(difference.changes) - CHANGES_SHOWN) + difference.more:
        yield f"  ... and {left} more"


def _table(outcome: ReplayResult) -> Iterator[str]:
    yield f"{'call':<16}{'calls':>7}{'recorded p50':>15}{'p99':>10}{'now p50':>11}{'p99':>10}   (ms)"
    for name, (count, was, now) in outcome.latencies().items():
        yield f"{name:<16}{count:>7}{was.p50:>15.2f}{was.p99:>10.2f}{now.p50:>11.2f}{now.p99:>10.2f}"
