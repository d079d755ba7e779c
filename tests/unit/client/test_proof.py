"""A mirror shows that it is as new as the API server was, whatever its watch did meanwhile."""

import asyncio

import pytest

from berth.client.errors import NotFoundError
from berth.client.watching.freshness import Absence, covers
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import eventually
from tests.unit.client.test_reflector import CUT, STAY, bookmark, event, mirrored, page, pod, refusal


@pytest.mark.parametrize(
    ("version", "wanted", "covered"),
    [
        pytest.param("10", "9", True, id="numbers, not text"),
        pytest.param("9", "9", True, id="the same"),
        pytest.param("9", "10", False, id="older"),
        pytest.param("abc", "10", None, id="no number"),
        pytest.param("10", "0x1f", None, id="no decimal number"),
        pytest.param("", "1", None, id="no version"),
        pytest.param("010", "9", None, id="not as the API server writes it"),
        pytest.param("١٢", "9", None, id="digits of another script"),
    ],
)
def test_versions(version, wanted, covered):
    assert covered is covers(version, wanted)


def test_the_longest_absence_counts(clock):
    """Until it is forgiven; one that goes on counts from then."""
    absence = Absence(clock)
    absence.begin()
    clock.seconds += 3
    absence.begin()
    assert 3 == absence.seconds()
    absence.end()
    clock.seconds += 10
    assert 3 == absence.seconds()
    absence.begin()
    clock.seconds += 1
    absence.forgive()
    assert 0 == absence.seconds()
    clock.seconds += 2
    assert 2 == absence.seconds()


async def test_few_objects_are_listed_again(clock):
    lists = [page(10, pod("a", 5)), page(20, pod("b", 15))]
    async with mirrored(clock, lists, [STAY], [STAY]) as (reflector, handler, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        await reflector.prove()

        assert [("add", "a@5"), ("synced",), ("add", "b@15"), ("delete", "a@5")] == handler.story
        assert "resourceVersion" not in wire.queries("list")[1]


def many(version, *later):
    """A list of two pages, and what is asked after it."""
    return [page(version, pod("a", 5), token="t"), page(version, pod("b", 6)), *later]


async def test_an_event_proves_it(clock):
    """Of many objects one is read for the version; no list follows."""
    lists = many(10, page(12, pod("a", 5)))
    async with mirrored(clock, lists, [event("MODIFIED", pod("b", 12)), STAY], page_size=1) as (
        reflector,
        handler,
        wire,
    ):
        await handler.until("update", "b@6", "b@12")
        await reflector.prove()

        assert "1" == wire.queries("list")[-1]["limit"]
        assert 1 == reflector.statistics.lists
        assert 1 == reflector.statistics.watches


async def test_the_bookmark_of_a_short_watch_proves_it(clock, monkeypatch):
    """Where nothing changes, the watch begins anew from its own version, for as short as brings one."""
    monkeypatch.setattr("berth.client.watching.reflector.GRACE_SECONDS", 0)
    monkeypatch.setattr("berth.client.watching.reflector.LISTED_SOONER", 1)
    lists = many(10, page(12, pod("a", 5)))
    watches = [STAY], [event("MODIFIED", pod("b", 11)), bookmark(12), STAY]
    async with mirrored(clock, lists, *watches, page_size=1) as (reflector, handler, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        await reflector.prove()

        short = wire.queries("watch")[1]
        assert ("10", "3") == (short["resourceVersion"], short["timeoutSeconds"])
        assert 1 == reflector.statistics.lists
        assert ("update", "b@6", "b@11") == handler.story[-1]


@pytest.mark.parametrize("version", ["9", "abc", ""])
async def test_what_no_version_proves_is_listed(clock, version):
    """A version that is no number, or one older than the mirror's: the history went back."""
    lists = many(10, page(version), page(8, pod("a", 5)))
    async with mirrored(clock, lists, [STAY], [STAY], page_size=1) as (reflector, handler, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        await reflector.prove()

        assert 2 == reflector.statistics.lists
        assert ("delete", "b@6") == handler.story[-1]


async def test_a_list_that_was_on_its_way_proves_nothing(clock, monkeypatch):
    """It may come to its end before it is left; the one that was asked for follows all the same."""
    lists = [page(10, pod("a", 5)), page(20, pod("b", 15)), page(30, pod("c", 25))]
    async with mirrored(clock, lists, [STAY], [STAY], [STAY]) as (reflector, handler, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        proving, added, leave = [], handler.on_add, reflector._begin_anew
        loop = asyncio.get_running_loop()

        def ask_for_another(obj):
            added(obj)
            if not proving:
                monkeypatch.setattr(reflector, "_begin_anew", lambda: loop.call_later(0.02, leave))
                proving.append(asyncio.create_task(reflector.prove()))

        monkeypatch.setattr(handler, "on_add", ask_for_another)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reflector.prove()
            await proving[0]

        assert 3 == reflector.statistics.lists


async def test_a_watch_that_does_not_get_there_is_replaced_by_a_list(clock, monkeypatch):
    monkeypatch.setattr("berth.client.watching.reflector.GRACE_SECONDS", 0)
    monkeypatch.setattr("berth.client.watching.reflector.LISTED_SOONER", 1)
    monkeypatch.setattr("berth.client.watching.reflector.BOOKMARK_BY_SECONDS", 0.05)
    lists = many(10, page(12, pod("a", 5)), page(13, pod("a", 13)))
    watches = [STAY], [bookmark(11), STAY], [STAY]
    async with mirrored(clock, lists, *watches, page_size=1) as (reflector, handler, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        await reflector.prove()

        assert "13" == reflector.resource_version
        assert [("update", "a@5", "a@13"), ("delete", "b@6")] == handler.story[-2:]


async def test_what_is_listed_sooner_than_a_bookmark_comes_is_listed(clock, monkeypatch):
    monkeypatch.setattr("berth.client.watching.reflector.GRACE_SECONDS", 0)
    lists = many(10, page(12, pod("a", 5)), page(13, pod("a", 13)))
    async with mirrored(clock, lists, [STAY], [STAY], page_size=1) as (reflector, _, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        await reflector.prove()

        assert 2 == reflector.statistics.lists
        assert "3" not in [query["timeoutSeconds"] for query in wire.queries("watch")]


async def test_a_proof_does_not_wait_for_a_pause(clock):
    """A mirror that waits before it tries again is woken."""
    asleep = asyncio.Event()

    async def sleep(_seconds):
        asleep.set()
        await asyncio.Event().wait()

    lists = [page(10, pod("a", 5)), page(20, pod("a", 5))]
    async with mirrored(clock, lists, [CUT], [STAY]) as (reflector, _, _wire):
        reflector._sleep = sleep
        await asleep.wait()
        await reflector.prove()

        assert "20" == reflector.resource_version


async def test_a_list_that_was_begun_before_proves_nothing(clock):
    """Only one that was begun after the call does."""
    lists = [page(10, pod("a", 5)), page(20, pod("a", 5)), page(30, pod("a", 25))]
    async with mirrored(clock, lists, [STAY], [STAY], [STAY]) as (reflector, _, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        await reflector.prove()
        await reflector.prove()

        assert "30" == reflector.resource_version


async def test_what_is_not_shown_any_more_is_said(clock):
    async with mirrored(clock, [page(10, pod("a", 5)), refusal(404)], [STAY]) as (reflector, _, wire):
        await eventually(lambda: len(wire.queries("watch")) == 1)
        with pytest.raises(NotFoundError):
            await reflector.prove()


async def test_a_watch_is_away_from_its_end_until_the_server_takes_it_on_again(clock):
    lists = [page(10, pod("a", 5))]
    async with mirrored(clock, lists, [CUT], refusal(500), [STAY]) as (reflector, _, wire):
        await eventually(lambda: len(wire.queries("watch")) == 3)
        await eventually(lambda: reflector.absence._since == float("inf"))

        assert pytest.approx(sum(clock.slept)) == reflector.absence.seconds()


@reports("kind-not-proven", log="`version not read`, with kind and cause; it is read again")
async def test_a_version_that_is_not_read_is_asked_for_again(clock, caplog):
    """A server that breaks meanwhile delays the proof, and the log says why."""
    lists = many(10, refusal(500), page(12, pod("a", 5)))
    async with mirrored(clock, lists, [event("MODIFIED", pod("b", 12)), STAY], page_size=1) as (
        reflector,
        handler,
        _,
    ):
        await handler.until("update", "b@6", "b@12")
        await reflector.prove()

    assert 1 == caplog.text.count("version not read resource=pods err=500")
