"""What the whole suite keeps to: chance that is the same every day, strategies that filter little."""

import asyncio
import os
import re
from collections import Counter
from zlib import crc32

import uvloop

LOOP_VARIABLE = "BERTH_EVENT_LOOP"
"""Where it is set, every test and every process that it starts runs on the loop that it names."""
FORCED_LOOP = os.environ.get(LOOP_VARIABLE, "")
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
ORDER_SEED = 1
"""Of the order of tests, unless another one is given."""
_TRIED = re.compile(r"(\d+) passing, (\d+) failing, and (\d+) invalid test cases")


def filtered_too_much(statistics):
    """Whether more than half of what a property test drew was filtered out, by Hypothesis's statistics."""
    tried = [tuple(map(int, counts)) for counts in _TRIED.findall(statistics)]
    used = sum(passing + failing for passing, failing, _ in tried)
    return sum(invalid for *_, invalid in tried) > used


def reasons_of_skips(reports):
    """A line for each reason, the most frequent first."""
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    return [f"SKIPPED [{count}] {reason}" for reason, count in reasons.most_common()]


def loop_of(node_id):
    """The name of the event loop for a test or module: half of them have each, the same ones every time."""
    return FORCED_LOOP or sorted(LOOPS)[crc32(node_id.encode()) % len(LOOPS)]
