"""What the whole suite keeps to: chance that is the same every day, strategies that filter little."""

import asyncio
import os
import re
from collections import Counter
from functools import cache
from itertools import chain, groupby
from zlib import crc32

import uvloop
from hypothesis import settings

LOOP_VARIABLE = "BERTH_EVENT_LOOP"
"""Where it is set, every test and every process that it starts runs on the loop that it names."""
FORCED_LOOP = os.environ.get(LOOP_VARIABLE, "")
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
COMPILING = {f"tests.{name}" for name in ("go_toolchain", "java_toolchain", "rust_toolchain", "without_sdk")}
WAITING = ("tests/e2e/", "tests/hostile/")
PATIENCE_SECONDS = 240
"""How long a test waits for what is sure to come: a busy machine is no fault of the code.

Less than the five minutes after which a queue tries all pods again.
"""
BUILD_SECONDS = 900
"""How long for what builds or installs."""
ORDER_SEED = 1
"""Of the order of tests, unless another one is given."""
_TRIED = re.compile(r"(\d+) passing, (\d+) failing, and (\d+) invalid test cases")


def examples(explored):
    """How many examples a property test has: so many where others are looked for, else three of ten.

    `make test` tries the same ones each time: what more of them would find, `make explore` finds.
    """
    return explored if not settings.default.derandomize else max(1, explored * 3 // 10)


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


def own_share_first(names, worker, workers):
    """The names in turn, from the worker's own share of them on; it is called gw0, gw1 and so on.

    Workers that go in step each do all of what one could leave to the others.
    """
    begin = len(names) * int(worker.removeprefix("gw")) // workers
    return [*names[begin:], *names[:begin]]


def slow_ones_first(items, workers):
    """The tests in an order in which each of so many workers begins with its share of the slow ones.

    Workers get an equal part each, one part after the other, and take what another has not come to: the tests
    that are left at the end are quick ones, and compilers begin while there is much else to do. A slow module
    is given to one worker as a whole: each worker would start the processes that its tests share.
    """
    slow = sorted(filter(_haste, items), key=_haste, reverse=True)
    quick = [item for item in items if not _haste(item)]
    shares = [[] for _ in range(workers)]
    for number, module in enumerate(list(tests) for _, tests in groupby(slow, key=_file)):
        # Of what compiles a module of five tests may take longer than one of thirty.
        share = shares[number % workers] if _haste(module[0]) == 2 else min(shares, key=len)
        share.extend(module)
    for share in shares[:-1]:
        room = max(0, len(items) // workers - len(share))
        share.extend(quick[:room])
        del quick[:room]
    return [*chain.from_iterable(shares), *quick]


def _file(item):
    return item.nodeid.partition("::")[0]


def _haste(item):
    """2 for a test whose module compiles programs, 1 for one that starts processes and waits for them."""
    return 2 if _compiles(item.module) else int(item.nodeid.startswith(WAITING))


@cache
def _compiles(module):
    return any(getattr(each, "__module__", "") in COMPILING for each in vars(module).values())
