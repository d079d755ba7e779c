"""While anything is in doubt no decision is taken; what proves it was begun after."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.client.errors import NotFoundError
from berth.client.resources import NODES
from berth.client.watching.freshness import Absence
from berth.client.watching.watch import WatchSource
from berth.client.write_guard import Terms, WriteGuard
from berth.scheduler.leading.fence import Fence, MirrorView
from tests.failures.reporting import reports
from tests.unit.client.conftest import FakeClock

BOUND = 10.0


class ProvedLater:
    """A mirror whose proof a test gives."""

    def __init__(self, clock):
        self.source = WatchSource(NODES)
        self.absence = Absence(clock)
        self.proofs = []

    async def prove(self):
        self.absence.forgive()
        proof = asyncio.get_running_loop().create_future()
        self.proofs.append(proof)
        await proof


@pytest.fixture
def clock():
    return FakeClock()


def parts(clock, **options):
    mirrors, guard = [ProvedLater(clock), ProvedLater(clock)], WriteGuard(landing_seconds=5.0, clock=clock)
    return (
        mirrors,
        guard,
        Fence(MirrorView(lambda: mirrors, BOUND, clock=clock), guard, Terms(), clock=clock, **options),
    )


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_new_term_waits_for_every_mirror(clock):
    seen = []
    mirrors, _, fence = parts(clock, observe=seen.append)
    fence.begin_term(raised=True)
    lowering = asyncio.create_task(fence.lower())
    await turns()
    mirrors[0].proofs[0].set_result(None)
    await turns()
    assert fence.is_up()
    clock.seconds += 0.5
    mirrors[1].proofs[0].set_result(None)
    await lowering

    assert not fence.is_up()
    assert [0.5] == seen


async def test_a_term_that_began_with_lists_is_proven(clock):
    mirrors, _, fence = parts(clock)
    fence.begin_term(raised=False)
    await fence.lower()

    assert [] == [*mirrors[0].proofs, *mirrors[1].proofs]


async def test_nothing_is_read_before_own_writes_can_land_no_more(clock):
    """What lands after the read would be in no proof."""
    mirrors, guard, fence = parts(clock)
    write = guard.sent()
    fence.begin_term(raised=True)
    lowering = asyncio.create_task(fence.lower())
    await turns()
    assert [] == mirrors[0].proofs
    guard.ended(write, certain=True)
    await turns()

    assert 1 == len(mirrors[0].proofs)
    lowering.cancel()
    await asyncio.wait([lowering])


async def test_a_watch_that_was_away_too_long_is_proven_alone(clock):
    """Also when it has come back meanwhile: what it missed may be on its way."""
    mirrors, _, fence = parts(clock)
    mirrors[0].absence.begin()
    clock.seconds += BOUND
    assert not fence.is_up()
    clock.seconds += 0.1
    mirrors[0].absence.end()
    assert fence.is_up()
    lowering = asyncio.create_task(fence.lower())
    await turns()
    mirrors[0].proofs[0].set_result(None)
    await lowering

    assert not fence.is_up()
    assert [] == mirrors[1].proofs


async def test_a_watch_that_leaves_during_the_proof_is_proven_after_it(clock):
    mirrors, _, fence = parts(clock)
    fence.begin_term(raised=True)
    lowering = asyncio.create_task(fence.lower())
    await turns()
    mirrors[1].absence.begin()
    clock.seconds += BOUND + 1
    for mirror in mirrors:
        mirror.proofs[0].set_result(None)
    await turns()
    assert [1, 2] == [len(mirror.proofs) for mirror in mirrors]
    mirrors[1].proofs[1].set_result(None)
    await lowering

    assert not fence.is_up()


@reports("kind-not-proven", log="`kind not shown, its last state stands`, with the cause")
async def test_a_kind_that_is_not_shown_any_more_stops_nothing(clock, caplog):
    mirrors, _, fence = parts(clock)
    fence.begin_term(raised=True)
    lowering = asyncio.create_task(fence.lower())
    await turns()
    mirrors[0].proofs[0].set_exception(NotFoundError(404, "NotFound", "no such kind"))
    mirrors[1].proofs[0].set_result(None)
    await lowering

    assert not fence.is_up()
    assert "kind not shown, its last state stands resource=" in caplog.text
    assert "404 NotFound: no such kind" in caplog.text


async def test_each_term_makes_earlier_decisions_unwritable(clock):
    _, guard, fence = parts(clock)

    async def term(raised):
        fence.begin_term(raised=raised)
        go_on = asyncio.Event()

        async def decided():
            await go_on.wait()
            return guard()

        return go_on, asyncio.create_task(decided())

    go_on, first = await asyncio.create_task(term(raised=False))
    await asyncio.create_task(term(raised=True))
    go_on.set()

    assert not await first


async def test_a_term_of_one_shard_leaves_the_others_deciding(clock):
    mirrors, guard, _ = parts(clock)
    view = MirrorView(lambda: mirrors, BOUND, clock=clock)
    others = Fence(view, guard, Terms(), clock=clock)
    fence = Fence(view, guard, Terms(), clock=clock)
    fence.begin_term(raised=True)

    assert (True, False) == (fence.is_up(), others.is_up())


async def test_what_one_shard_is_proving_is_in_doubt_for_the_others(clock):
    """The absence is forgiven when the proof begins; nothing may be decided on it before the proof ends."""
    mirrors, guard, _ = parts(clock)
    view = MirrorView(lambda: mirrors, BOUND, clock=clock)
    fence, others = (Fence(view, guard, Terms(), clock=clock) for _ in range(2))
    mirrors[0].absence.begin()
    clock.seconds += BOUND + 1
    mirrors[0].absence.end()
    lowering = asyncio.create_task(fence.lower())
    await turns()
    assert 0.0 == mirrors[0].absence.seconds()
    assert others.is_up()
    lowering.cancel()
    await asyncio.wait([lowering])
    assert others.is_up()
    lowering = asyncio.create_task(others.lower())
    await turns()
    mirrors[0].proofs[-1].set_result(None)
    await lowering

    assert (False, False) == (fence.is_up(), others.is_up())


DEEDS = st.tuples(
    st.sampled_from(["begin", "end", "forgive", "join"]), st.integers(0, 3), st.floats(0.0, 8.0)
)


@given(deeds=st.lists(DEEDS, max_size=30), asked=st.sets(st.integers(0, 30)))
def test_a_doubt_is_seen_whenever_it_is_asked_for(deeds, asked):
    """What was found out earlier is never relied on beyond what it shows; a kind may join at any time."""
    clock = FakeClock()
    mirrors = [ProvedLater(clock)]
    view = MirrorView(lambda: mirrors, BOUND, clock=clock)
    for i, (deed, which, seconds) in enumerate(deeds):
        if deed == "join":
            mirrors.append(ProvedLater(clock))
        else:
            getattr(mirrors[which % len(mirrors)].absence, deed)()
        clock.seconds += seconds
        if i in asked:
            assert view.any_in_doubt() == any(view.in_doubt())
