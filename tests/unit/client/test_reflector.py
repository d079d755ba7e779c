"""Whatever happens on the wire, a handler gets one consistent story."""

import asyncio
import json
from contextlib import asynccontextmanager
from random import Random
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from berth.client.resources import PODS
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.telemetry.metrics.registry import SchedulerMetrics
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import answer, eventually, raw_server, read_request, transport_to

decode = msgspec.json.Decoder(dict).decode


class Recorder:
    """Notes what it is given as short tuples, and can be waited for."""

    def __init__(self):
        self.story = []
        self.changed = asyncio.Event()

    def _note(self, *what):
        self.story.append(what)
        self.changed.set()

    def on_add(self, obj):
        self._note("add", label(obj))

    def on_update(self, old, new):
        self._note("update", label(old), label(new))

    def on_delete(self, obj):
        self._note("delete", label(obj))

    def on_synced(self):
        self._note("synced")

    async def until(self, *last):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while last not in self.story:
                self.changed.clear()
                await self.changed.wait()


def label(obj):
    return f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}"


def pod(name, version, uid=None, **more):
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, **more}


def page(version, *items, token=""):
    body = {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(items)}
    return answer(200, json.dumps(body, ensure_ascii=False).encode())


def refusal(code, message="no"):
    return answer(code, json.dumps({"kind": "Status", "code": code, "message": message}).encode())


def event(kind, obj):
    return json.dumps({"type": kind, "object": obj}, ensure_ascii=False).encode() + b"\n"


def bookmark(version):
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


STAY = object()
CUT = object()


class Wire:
    """Answers lists and watches in the order given; bytes are sent, STAY keeps a watch open."""

    def __init__(self, lists, watches):
        self.lists, self.watches, self.asked = list(lists), list(watches), []

    async def serve(self, reader, writer):
        while True:
            head, _ = await read_request(reader)
            query = {k: v[0] for k, v in parse_qs(urlsplit(head.split()[1].decode()).query).items()}
            self.asked.append(query)
            if "watch" not in query:
                writer.write(self.lists.pop(0))
            elif await self._watch(reader, writer):
                return

    async def _watch(self, reader, writer):
        steps = self.watches.pop(0) if self.watches else [STAY]
        if isinstance(steps, bytes):
            writer.write(steps)
            return False
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for step in steps:
            if step is STAY:
                await reader.read()
            elif step is CUT:
                return True
            else:
                writer.write(b"%x\r\n%b\r\n" % (len(step), step))
                await writer.drain()
                await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        await reader.read()
        return True

    def queries(self, kind):
        return [query for query in self.asked if ("watch" in query) == (kind == "watch")]


@asynccontextmanager
async def mirrored(clock, lists, *watches, **options):
    """A reflector running against a scripted server; gives reflector, its events, the wire."""
    wire, handler = Wire(lists, watches), Recorder()
    async with raw_server(wire.serve) as server, transport_to(server.url) as transport:
        reflector = Reflector(
            transport,
            WatchSource(PODS, field_selector="status.phase!=Failed"),
            options.pop("decode", decode),
            handler,
            clock=clock,
            sleep=clock.sleep,
            rng=Random(1),
            **options,
        )
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector, handler, wire
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_list_then_watch(clock):
    """Objects of the list are adds, then comes synced, then the watch goes on from the list's version."""
    changes = [
        event("ADDED", pod("b", 11)),
        event("MODIFIED", pod("a", 12)),
        event("DELETED", pod("b", 13)),
        STAY,
    ]
    async with mirrored(clock, [page(10, pod("a", 5))], changes) as (reflector, handler, wire):
        await handler.until("delete", "b@13")

    assert handler.story == [
        ("add", "a@5"),
        ("synced",),
        ("add", "b@11"),
        ("update", "a@5", "a@12"),
        ("delete", "b@13"),
    ]
    assert wire.queries("watch")[0]["resourceVersion"] == "10"
    assert wire.queries("watch")[0]["allowWatchBookmarks"] == "true"
    assert wire.queries("list")[0]["fieldSelector"] == "status.phase!=Failed"
    assert reflector.resource_version == "13"
    assert len(reflector) == 1


async def test_paging(clock):
    """A long list comes page by page, each asked for with the token of the one before."""
    lists = [page(10, pod("a", 1), token="t1"), page(10, pod("b", 2), token="t2"), page(10, pod("c", 3))]
    async with mirrored(clock, lists, page_size=1) as (_, handler, wire):
        await handler.until("synced")

    assert handler.story == [("add", "a@1"), ("add", "b@2"), ("add", "c@3"), ("synced",)]
    assert [query.get("continue") for query in wire.queries("list")] == [None, "t1", "t2"]
    assert all(query["limit"] == "1" for query in wire.queries("list"))


async def test_resume_after_cut(clock):
    """After a cut the watch goes on from the last event, without a new list."""
    async with mirrored(
        clock, [page(10)], [event("ADDED", pod("a", 11)), CUT], [event("MODIFIED", pod("a", 12)), STAY]
    ) as (reflector, handler, wire):
        await handler.until("update", "a@11", "a@12")

    assert [query["resourceVersion"] for query in wire.queries("watch")] == ["10", "11"]
    assert reflector.statistics.lists == 1
    assert len(clock.slept) == 1


async def test_resume_from_bookmark(clock):
    """A bookmark moves the position on although no object changed."""
    async with mirrored(clock, [page(10)], [bookmark(99)], [event("ADDED", pod("a", 100)), STAY]) as (
        reflector,
        handler,
        wire,
    ):
        await handler.until("add", "a@100")

    assert wire.queries("watch")[1]["resourceVersion"] == "99"
    assert reflector.statistics.bookmarks == 1


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(refusal(410), id="HTTP status"),
        pytest.param(
            [event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})], id="ERROR event"
        ),
        pytest.param([event("ERROR", {"status": "Failure", "reason": "Expired"})], id="ERROR without a code"),
        pytest.param([event("ERROR", "gone")], id="ERROR that is a string"),
        pytest.param(refusal(504, "Too large resource version: 10, current: 7"), id="version too large"),
        pytest.param(refusal(400, "invalid resource version"), id="bad version"),
    ],
)
async def test_relist(clock, end):
    """A position that is of no use ends in a new list, reported as its difference to what was known."""
    before = page(10, pod("same", 1), pod("changed", 2), pod("gone", 3), pod("replaced", 4))
    after = page(50, pod("same", 1), pod("changed", 20), pod("replaced", 40, uid="another"), pod("new", 30))
    async with mirrored(clock, [before, after], end) as (reflector, handler, wire):
        await handler.until("delete", "gone@3")
        await eventually(lambda: len(wire.queries("watch")) == 2)

    start = handler.story.index(("synced",)) + 1
    assert handler.story[start:] == [
        ("update", "changed@2", "changed@20"),
        ("delete", "replaced@4"),
        ("add", "replaced@40"),
        ("add", "new@30"),
        ("delete", "gone@3"),
    ]
    assert wire.queries("watch")[1]["resourceVersion"] == "50"
    assert reflector.statistics.lists == 2


async def test_torn_characters(clock):
    """Chunks that end within a line, and within a character, change nothing."""
    line = event("ADDED", pod("a", 11, note="größe 😀")) + event("ADDED", pod("b", 12))
    pieces = [line[i : i + 1] for i in range(len(line))]
    seen = []

    def remember(raw):
        seen.append(decode(raw))
        return seen[-1]

    async with mirrored(clock, [page(10)], [*pieces, STAY], decode=remember) as (_, handler, _wire):
        await handler.until("add", "b@12")

    assert seen[0]["note"] == "größe 😀"


@pytest.mark.parametrize(
    "line", [b"{this is not JSON\n", b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n']
)
async def test_an_event_without_a_name_is_made_up_for_by_a_list(clock, line):
    """What it said may have been that an object is gone: the next list shows."""
    lists = [page(10, pod("a", 1)), page(20, pod("b", 15))]
    async with mirrored(clock, lists, [line, event("ADDED", pod("c", 19))], [STAY]) as (found, handler, _):
        await handler.until("delete", "a@1")

    assert handler.story == [("add", "a@1"), ("synced",), ("add", "b@15"), ("delete", "a@1")]
    assert (2, 1) == (found.statistics.lists, found.aside.total)


async def test_garbage_is_skipped(clock):
    """Objects that can't be decoded are counted and skipped; the stream goes on."""
    changes = [
        b"\n",
        event("ADDED", pod("bad", 11, broken=True)),
        event("ADDED", pod("good", 12)),
        STAY,
    ]

    def picky(raw):
        obj = decode(raw)
        if obj.get("broken"):
            raise KeyError("spec")
        return obj

    first = page(10, pod("worse", 1, broken=True))
    async with mirrored(clock, [first], changes, decode=picky) as (reflector, handler, _):
        await handler.until("add", "good@12")

    assert handler.story == [("synced",), ("add", "good@12")]
    assert reflector.aside.total == 2


async def test_delete_undecodable(clock):
    """A delete whose object can't be decoded is reported with the object known before."""

    def picky(raw):
        obj = decode(raw)
        return obj if obj["metadata"]["resourceVersion"] != "12" else obj["absent"]

    async with mirrored(
        clock, [page(10, pod("a", 1))], [event("DELETED", pod("a", 12)), STAY], decode=picky
    ) as (
        _,
        handler,
        _wire,
    ):
        await handler.until("delete", "a@1")


async def test_added_again(clock):
    """ADDED for a known object is an update, DELETED for an unknown one is nothing, repeats are nothing."""
    changes = [
        event("DELETED", pod("x", 11)),
        event("ADDED", pod("a", 1)),
        event("ADDED", pod("a", 12)),
        event("MODIFIED", pod("a", 13, uid="another")),
        STAY,
    ]
    async with mirrored(clock, [page(10, pod("a", 1))], changes) as (_, handler, _wire):
        await handler.until("add", "a@13")

    assert handler.story == [
        ("add", "a@1"),
        ("synced",),
        ("update", "a@1", "a@12"),
        ("delete", "a@12"),
        ("add", "a@13"),
    ]


async def test_token_expired(clock):
    """When the continue token expires, the list is taken in one piece."""
    lists = [page(10, pod("a", 1), token="t1"), refusal(410), page(12, pod("b", 2))]
    async with mirrored(clock, lists) as (_, handler, wire):
        await handler.until("synced")

    assert handler.story == [("add", "a@1"), ("add", "b@2"), ("delete", "a@1"), ("synced",)]
    assert "limit" not in wire.queries("list")[2]


@pytest.mark.parametrize("end", [refusal(400), refusal(504, "Too large resource version: 0, current: 3")])
async def test_cache_refused(clock, end):
    """Where a list from the cache is refused, an ordinary one follows."""
    async with mirrored(clock, [end, page(10, pod("a", 1))], from_cache=True) as (_, handler, wire):
        await handler.until("synced")

    assert [query.get("resourceVersion") for query in wire.queries("list")] == ["0", None]


@reports(
    "watch-breaks",
    metric="`berth_watch_errors_total` by kind",
    log="`watch interrupted`, once for a cause; `watch goes on`",
)
async def test_backoff_grows(clock, caplog):
    """A server that fails at once is asked less and less often, and a cause is logged once until it ends."""
    caplog.set_level("INFO", logger="berth.client")
    async with mirrored(clock, [*[refusal(500)] * 6, page(10)]) as (reflector, handler, _):
        await handler.until("synced")
        await eventually(lambda: "watch goes on resource=pods" in caplog.text)

    assert len(clock.slept) == 6
    assert all(0.2 * 2**i <= pause <= 0.4 * 2**i for i, pause in enumerate(clock.slept))
    metrics = SchedulerMetrics()
    metrics.watch_watches(lambda: {"pods": float(reflector.statistics.errors)})
    assert b'berth_watch_errors_total{resource="pods"} 6.0' in metrics.text()
    assert 1 == caplog.text.count("watch interrupted resource=pods err=")
    assert 1 == caplog.text.count("watch goes on resource=pods")
    assert "500" in reflector.last_error


EXPIRED_ENDS = [
    pytest.param(refusal(410, "too old resource version"), id="HTTP status"),
    pytest.param([event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})], id="ERROR event"),
]


@pytest.mark.parametrize("end", EXPIRED_ENDS)
async def test_an_idle_watch_that_resumes_after_a_compaction(clock, caplog, end):
    """A kind without bookmarks, such as events, is listed anew when its version was compacted: no error."""
    lists = [page(10, pod("a", 1)), page(50, pod("a", 1)), page(90, pod("b", 80))]
    idle = []
    async with mirrored(clock, lists, idle, end, idle, end) as (reflector, handler, wire):
        await handler.until("delete", "a@1")

    assert ["10", "10", "50", "50"] == [query["resourceVersion"] for query in wire.queries("watch")][:4]
    assert (0, "") == (reflector.statistics.errors, reflector.last_error)
    assert [] == [line for line in caplog.records if line.levelname == "WARNING"]


@pytest.mark.parametrize("end", EXPIRED_ENDS)
async def test_a_server_that_refuses_the_version_of_its_own_list(clock, caplog, end):
    """A version that is expired as soon as it is listed is a fault of the server, and is reported."""
    async with mirrored(clock, [page(10), page(10, pod("a", 1))], end) as (reflector, handler, _):
        await handler.until("add", "a@1")

    assert 1 == reflector.statistics.errors
    assert 1 == caplog.text.count("watch interrupted resource=pods err=410")


async def test_a_kind_that_is_served_later(clock, caplog):
    """A kind that the server does not have is asked for again within two seconds, however long that lasts."""
    lists = [refusal(404, "the server could not find the requested resource")] * 50
    async with mirrored(clock, [*lists, page(10)]) as (_, handler, _wire):
        await handler.until("synced")

    assert 50 == len(clock.slept)
    assert max(clock.slept) < 2
    assert 1 == caplog.text.count("watch interrupted resource=pods err=")


async def test_watch_closed_at_once(clock):
    """A server that ends each watch at once is not asked in a hot loop."""
    async with mirrored(clock, [page(10)], [], [], [], [event("ADDED", pod("a", 11)), STAY]) as (
        _,
        handler,
        _wire,
    ):
        await handler.until("add", "a@11")

    assert len(clock.slept) == 3
    assert clock.slept == sorted(clock.slept)


@pytest.mark.parametrize(
    ("asked", "slept"),
    [
        pytest.param("17", 17.0, id="as long as it says"),
        pytest.param("86400", 30.0, id="a day"),
        pytest.param("9" * 4_000, 30.0, id="no end"),
    ],
)
async def test_throttled(clock, asked, slept):
    """A 429 is waited out as long as it says, and never longer than client-go's reflector pauses."""
    slow = answer(429, b"", f"Retry-After: {asked}")
    async with mirrored(clock, [slow, page(10)]) as (_, handler, _wire):
        await handler.until("synced")

    assert clock.slept == [slept]


async def test_huge_list_lets_others_run(clock, monkeypatch):
    """While a long list is read, other tasks get many turns."""
    monkeypatch.setattr("berth.client.watching.reflector.TURN_SECONDS", 0.0)
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    many = page(10, *(pod(f"p{i}", i) for i in range(2000)))
    task = asyncio.create_task(other())
    async with mirrored(clock, [many]) as (reflector, handler, _):
        await handler.until("add", "p0@0")
        before = turns
        await handler.until("synced")
    task.cancel()
    await asyncio.wait([task])

    assert turns - before > 1000
    assert len(reflector) == 2000
