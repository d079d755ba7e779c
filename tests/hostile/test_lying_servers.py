"""An API server that lies, or stands behind something that does: a mirror's story stays one that makes sense.

What it may do at most: have the mirror hold what it says, and list again, at the pace of the backoff. Once it
says the truth, the mirror holds that.
"""

import asyncio
import json
from random import Random

import pytest

from berth.client.resources import PODS
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import MAX_EMPTY_PAGES, WatchSource
from tests.unit.client.conftest import FakeClock, eventually, transport_to
from tests.unit.client.conftest import raw_server as served
from tests.unit.client.test_chaos import Folded
from tests.unit.client.test_reflector import STAY, Wire, bookmark, decode, event, mirrored, page, pod, refusal

TRUTH = [pod("p0", 9_001), pod("p1", 9_002)]
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired"}


def lines(rng):
    """A watch of which hardly a line is true: versions go back, bookmarks jump, things come twice."""
    for _ in range(rng.randrange(12)):
        name, version = f"p{rng.randrange(4)}", rng.choice([0, 1, rng.randrange(9_000), 2**70])
        uid = f"uid-{name}-{rng.randrange(3)}"
        kind = rng.choice(["ADDED", "MODIFIED", "DELETED", "DELETED", "INVENTED"])
        line = event(kind, pod(name, version, uid))
        yield rng.choice([line, line + line, bookmark(version), bookmark("x" * 300), line[: len(line) // 2]])
    yield rng.choice([STAY, event("ERROR", EXPIRED), event("ERROR", {"code": "410"}), b"\xff\n", b""])


def answers(rng):
    """Lists: refused, empty, of the same object again and again, with metadata of the wrong kinds."""
    for _ in range(rng.randrange(8)):
        listed = [
            pod(f"p{rng.randrange(3)}", rng.randrange(9_000), f"uid-{rng.randrange(3)}") for _ in range(4)
        ]
        yield rng.choice(
            [
                refusal(410),
                refusal(429),
                refusal(504, "Too large resource version"),
                page("0"),
                page(rng.randrange(9_000), *listed),
                page("not a number", *listed, *listed),
                refusal(200, "no list at all"),
            ]
        )


def sparse(steps):
    """The watch without what keeps it open, but for the last one."""
    return [step for step in steps if step is not STAY and step]


@pytest.mark.parametrize("seed", range(12))
async def test_the_mirror_ends_up_with_the_truth(seed):
    clock = FakeClock()
    rng, folded = Random(seed), Folded()
    watches = [sparse(lines(rng)) for _ in range(rng.randrange(1, 6))]
    lists = list(answers(rng))
    truth = page(9_003, *TRUTH)
    # Once the watches of lies are over, lists are asked for until one is true.
    wire = Wire([*lists, *[truth] * 40], [*watches, *[[event("ERROR", EXPIRED)]] * (len(lists) + 1), [STAY]])
    async with served(wire.serve) as server, transport_to(server.url) as transport:
        mirror = Reflector(
            transport, WatchSource(PODS), decode, folded, clock=clock, sleep=clock.sleep, rng=Random(seed)
        )

        def settled():
            return not wire.watches and TRUTH == [folded.pods[name] for name in sorted(folded.pods)]

        task = asyncio.create_task(mirror.run())
        try:
            await eventually(lambda: task.done() or settled())
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait([task])

    assert TRUTH == sorted(mirror.objects(), key=lambda each: each["metadata"]["name"])
    assert 40 > mirror.statistics.lists - len(lists)


async def test_a_page_that_is_followed_by_itself():
    """Empty pages without end are an error of the list, which is asked for again after a pause."""
    clock = FakeClock()
    async with mirrored(clock, [page(7, token="t")] * 4 + [page(9, TRUTH[0])]) as (_, handler, wire):
        await handler.until("synced")

        assert [("add", "p0@9001"), ("synced",)] == handler.story
        assert [None, "t", None, "t", None] == [query.get("continue") for query in wire.queries("list")]
        assert 2 == len(clock.slept)


async def test_empty_pages_that_are_followed_by_others_without_end():
    """Each names another one as the next: the list is an error after so many of them, too."""
    clock, pages = FakeClock(), [page(7, token=f"t{i}") for i in range(MAX_EMPTY_PAGES + 1)]
    async with mirrored(clock, [*pages[:MAX_EMPTY_PAGES], page(9, TRUTH[0])]) as (_, handler, wire):
        await handler.until("synced")

        assert [("add", "p0@9001"), ("synced",)] == handler.story
        assert MAX_EMPTY_PAGES + 1 == len(wire.queries("list"))
        assert 1 == len(clock.slept)


def test_a_page_whose_items_are_no_objects_leaves_the_others():
    folded = Folded()
    mirror = Reflector(None, WatchSource(PODS), decode, folded)
    for raw in (b"null", b"7", b'"x"', b"[]", b'{"metadata":[]}', json.dumps(pod("p0", 1)).encode()):
        mirror._take_listed(raw, {})

    assert ["p0"] == list(folded.pods)
    assert 5 == mirror.aside.total
