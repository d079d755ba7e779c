"""A list that is taken apart while it arrives: however its bytes are cut, items come once and in order."""

import asyncio
import json

import msgspec
import pytest

from berth.client.errors import DeadlineError
from berth.client.resources import PODS
from berth.client.watching import watch, whole_list
from berth.client.watching.watch import WatchSource, pages
from berth.client.watching.whole_list import ListPieces
from tests.unit.client.conftest import answer, raw_server, read_request, transport_to
from tests.unit.client.test_reflector import mirrored, page, pod, refusal

PLAIN = [pod(f"p{i}", i) for i in range(5)]
NESTED = [pod(f"p{i}", i, parts=[{"metadata": {"n": 1}}, {"metadata": {"n": 2}}]) for i in range(5)]
QUOTED = [pod(f"p{i}", i, note='"},{"metadata":{"name":"x"}},{"kind":"') for i in range(5)]
OTHER_ORDER = [{"kind": "Pod", **each} for each in PLAIN]
DEEP = [pod("p0", 0, deep=json.loads("[" * 900 + "]" * 900)), *PLAIN[1:]]


def written(items, *, version="7"):
    return json.dumps(
        {"metadata": {"resourceVersion": version}, "items": items}, separators=(",", ":")
    ).encode()


def taken(data, size):
    """The items of those bytes in pieces of that size, and the list's version."""
    pieces, items = ListPieces(), []
    for at in range(0, len(data), size):
        items += pieces.take(data[at : at + size])
    last = pieces.last()
    return [msgspec.json.decode(item) for item in (*items, *last.items)], last.metadata.resource_version


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 100_000])
@pytest.mark.parametrize("items", [[], PLAIN, NESTED, QUOTED, OTHER_ORDER, DEEP], ids=str)
def test_items_come_once_and_in_order_however_the_bytes_are_cut(items, size):
    assert taken(written(items), size) == (items, "7")


def test_items_come_before_the_list_ends():
    pieces = ListPieces()

    assert len(pieces.take(written(PLAIN)[:-3])) == len(PLAIN) - 1


def test_a_list_whose_metadata_comes_last_has_it():
    document = json.dumps({"items": PLAIN, "metadata": {"resourceVersion": "9"}}, separators=(",", ":"))

    assert taken(document.encode(), 50) == (PLAIN, "9")


def test_a_list_of_no_items_at_all_is_one():
    pieces = ListPieces()

    assert pieces.take(b'{"metadata":{"resourceVersion":"3"},"items":null}') == []
    assert (pieces.last().items, pieces.last().metadata.resource_version) == (None, "3")


@pytest.mark.parametrize("data", [b"no list", b'{"items":[{"metadata":{"name":"a"}},{"metadata":'])
def test_what_is_no_list_is_refused(data):
    pieces = ListPieces()
    pieces.take(data)

    with pytest.raises(msgspec.DecodeError):
        pieces.last()


def test_an_item_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(whole_list, "MAX_BYTES", 1000)
    pieces = ListPieces()

    with pytest.raises(msgspec.DecodeError, match="no end of an item in 1000 bytes"):
        pieces.take(b'{"items":[{"metadata":{"name":"' + b"x" * 1000)


async def test_a_mirror_lists_in_one_piece(clock):
    async with mirrored(clock, [page(10, pod("a", 1), pod("b", 2))], whole=True) as (_, handler, wire):
        await handler.until("synced")

    assert handler.story == [("add", "a@1"), ("add", "b@2"), ("synced",)]
    assert "limit" not in wire.queries("list")[0]


@pytest.mark.parametrize(
    "broken",
    [refusal(500), answer(200, b"[]"), answer(200, written(PLAIN)[:-3])],
    ids=["500", "other", "torn"],
)
async def test_a_list_that_fails_is_taken_page_by_page(clock, broken):
    """What had come of it is not reported again."""
    async with mirrored(clock, [broken, page(10, *PLAIN)], whole=True, page_size=100) as (_, handler, wire):
        await handler.until("synced")

    assert handler.story == [*(("add", f"p{i}@{i}") for i in range(5)), ("synced",)]
    assert [query.get("limit") for query in wire.queries("list")] == [None, "100"]


async def test_a_server_that_limits_every_list_is_asked_for_the_rest(clock):
    lists = [page(10, pod("a", 1), token="t1"), page(10, pod("b", 2))]
    async with mirrored(clock, lists, whole=True) as (_, handler, wire):
        await handler.until("synced")

    assert handler.story == [("add", "a@1"), ("add", "b@2"), ("synced",)]
    assert [query.get("continue") for query in wire.queries("list")] == [None, "t1"]


async def listed(serve):
    """What comes of a list in one piece."""
    async with raw_server(serve) as server, transport_to(server.url, request_seconds=0.1) as transport:
        return [page async for page in pages(transport, WatchSource(PODS), page_size=0)]


async def test_a_list_that_trickles_has_a_deadline(monkeypatch):
    """However steadily its bytes come, one after the other."""
    monkeypatch.setattr(watch, "SLOWEST_BYTES_A_SECOND", 1_000_000)

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not reader.at_eof():
            writer.write(b" ")
            await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.01)

    with pytest.raises(DeadlineError, match="did not come in time"):
        await listed(serve)


async def test_a_long_list_has_the_time_that_it_takes(monkeypatch):
    """Twice the deadline of a page, and at a good pace."""
    monkeypatch.setattr(watch, "SLOWEST_BYTES_A_SECOND", 100)
    data = written(PLAIN)

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
        for at in range(0, len(data), 20):
            writer.write(data[at : at + 20])
            await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.02)

    assert len(PLAIN) == sum(len(page.items) for page in await listed(serve))


@pytest.mark.parametrize("parts", [1_000, 8_000])
def test_an_item_of_many_parts_is_looked_through_a_few_times(monkeypatch, parts):
    looked, decode = [], whole_list._decode_items

    def counted(data):
        looked.append(len(data))
        return decode(data)

    monkeypatch.setattr(whole_list, "_decode_items", counted)
    items = [pod("p0", 0, owners=[{"kind": "x", "name": "y" * 50}] * parts), *PLAIN[1:]]
    data = written(items)

    assert taken(data, 1_000) == (items, "7")
    assert sum(looked) < 20 * len(data)
