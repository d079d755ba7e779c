"""Events are written beside the work, folded when they repeat, and dropped rather than waited for."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from berth.client.api import Api
from berth.client.events import EventRecorder, Reference, shortened
from berth.telemetry.metrics.registry import SchedulerMetrics
from tests.failures.reporting import reports
from tests.unit.client.conftest import answer, eventually, raw_server, read_request, transport_to

POD = Reference("v1", "Pod", "ns", "p", "u1", "7")


class EventServer:
    """Keeps what was written; `answers` are statuses for the next requests, None cuts the connection."""

    def __init__(self):
        self.requests, self.answers, self.hold, self.connections = [], [], None, 0

    async def serve(self, reader, writer):
        self.connections += 1
        while True:
            head, body = await read_request(reader)
            method, path = (part.decode() for part in head.split()[:2])
            self.requests.append((method, path, json.loads(body)))
            if self.hold is not None:
                await self.hold.wait()
            status = self.answers.pop(0) if self.answers else 201
            if status is None:
                return
            writer.write(answer(status))


@asynccontextmanager
async def recording(clock, *, server=None, **options):
    server = server or EventServer()
    async with raw_server(server.serve) as address, transport_to(address.url) as transport:
        # Pauses between attempts pass at once; sweeping is called by the tests themselves.
        recorder = EventRecorder(Api(transport), clock, clock.after, hostname="host", **options)
        task = asyncio.create_task(recorder.run())
        try:
            yield recorder, server
        finally:
            task.cancel()
            await asyncio.wait([task])


def scheduled(recorder, *, regarding=POD, note="Successfully assigned ns/p to n1"):
    recorder.event(
        regarding,
        controller="default-scheduler",
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=note,
    )


async def test_event(clock):
    """An event carries what kubectl shows, in the pod's namespace."""
    async with recording(clock) as (recorder, server):
        scheduled(recorder)
        assert await recorder.drain(60)

    method, path, event = server.requests[0]
    assert (method, path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
    name = event["metadata"].pop("name")
    assert name == f"p.{1767323045 * 10**9:x}"
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "ns"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "p",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "note": "Successfully assigned ns/p to n1",
    }


async def test_series(clock):
    """The first repetition makes a series of two; later ones are counted in memory."""
    async with recording(clock) as (recorder, server):
        for i in range(5):
            scheduled(recorder, note=f"note {i}")
            await recorder.drain(60)

    assert [method for method, _, _ in server.requests] == ["POST", "PATCH"]
    assert server.requests[1][2] == {
        "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.000000Z"}
    }
    assert recorder.statistics.folded == 4


@pytest.mark.parametrize(("by_note", "written"), [(False, ["first"]), (True, ["first", "second"])])
async def test_another_note(clock, by_note, written):
    """A later note goes into the series that there is, or begins another."""
    async with recording(clock, by_note=by_note) as (recorder, server):
        for note in ("first", "second", "first"):
            scheduled(recorder, note=note)
        assert await recorder.drain(60)

    assert written == [event["note"] for method, _, event in server.requests if method == "POST"]


async def test_repeated_while_being_written(clock):
    """A repetition that comes while the event is on its way is written after it, never before."""
    server = EventServer()
    server.hold = asyncio.Event()
    async with recording(clock, server=server) as (recorder, _):
        scheduled(recorder)
        await eventually(lambda: server.requests)
        scheduled(recorder)
        scheduled(recorder)
        server.hold.set()
        await recorder.drain(60)

    assert [method for method, _, _ in server.requests] == ["POST", "PATCH"]
    assert server.requests[1][2]["series"]["count"] == 3


async def test_series_is_refreshed_and_ended(clock):
    """A series is written again after half an hour, ended after six quiet minutes, then forgotten."""
    async with recording(clock) as (recorder, server):
        for _ in range(3):
            scheduled(recorder)
            await recorder.drain(60)
        for _ in range(10):
            clock.seconds += 190
            scheduled(recorder)
            recorder._sweep()
            await recorder.drain(60)
        refreshed = server.requests[-1][2]["series"]["count"]
        scheduled(recorder)
        clock.seconds += 361
        recorder._sweep()
        await recorder.drain(60)
        ended = server.requests[-1][2]["series"]["count"]
        scheduled(recorder)
        await recorder.drain(60)

    assert refreshed == 13
    assert ended == 14
    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "PATCH", "PATCH", "POST"]


async def test_expired_on_the_server(clock):
    """A series whose event is gone begins as a new event."""
    server = EventServer()
    server.answers = [201, 404, 201]
    async with recording(clock, server=server) as (recorder, _):
        for _ in range(2):
            scheduled(recorder)
            await recorder.drain(60)

    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "POST"]
    assert server.requests[2][2]["series"]["count"] == 2


async def test_slow_server(clock):
    """The more events wait, the more are written at a time, and no more than that once few are left."""
    server = EventServer()
    server.hold = asyncio.Event()
    async with recording(clock, server=server, capacity=40, writes=2, max_writes=8, together=1) as (
        recorder,
        _,
    ):
        scheduled(recorder)
        await eventually(lambda: len(server.requests) == 1)
        for i in range(39):
            scheduled(recorder, regarding=replace(POD, name=f"p{i}"))
        await eventually(lambda: len(server.requests) == 7)
        server.hold.set()
        await recorder.drain(60)
        server.hold = asyncio.Event()
        for i in range(3):
            scheduled(recorder, regarding=replace(POD, name=f"later{i}"))
        await eventually(lambda: len(server.requests) == 42)
        assert 1 == len(recorder._waiting)

    assert (40, 0) == (recorder.statistics.written, recorder.statistics.dropped)


async def test_events_of_a_turn_share_a_write(clock):
    """What is recorded in one turn of the loop leaves over one connection, each event with its own answer."""
    server = EventServer()
    server.answers = [201, 503, 403, 409]
    async with recording(clock, server=server) as (recorder, _):
        for i in range(4):
            scheduled(recorder, regarding=replace(POD, name=f"p{i}"))
        await recorder.drain(60)

    assert 1 == server.connections
    assert ["p0", "p1", "p2", "p3", "p1"] == [body["regarding"]["name"] for _, _, body in server.requests]
    assert (3, 1) == (recorder.statistics.written, recorder.statistics.failed)


async def test_a_cut_in_the_middle_of_a_write(clock):
    """Events that were not answered are written once more; the server knows by its name one that it has."""
    server = EventServer()
    server.answers = [201, None]
    async with recording(clock, server=server) as (recorder, _):
        for i in range(3):
            scheduled(recorder, regarding=replace(POD, name=f"p{i}"))
        await recorder.drain(60)

    names = [body["metadata"]["name"] for _, _, body in server.requests]
    assert (2, 4) == (server.connections, len(names))
    assert 3 == len(set(names)) == recorder.statistics.written


async def test_a_backlog_after_the_end(clock):
    """Events may still be recorded when they are written no more, however many wait."""
    async with recording(clock, capacity=10, writes=1, max_writes=8) as (recorder, server):
        scheduled(recorder)
        await recorder.drain(60)
    for i in range(20):
        scheduled(recorder, regarding=replace(POD, name=f"p{i}"))

    assert (1, 10) == (len(server.requests), recorder.statistics.dropped)


def shown(recorder):
    """What /metrics has of a recorder."""
    metrics = SchedulerMetrics()
    metrics.watch_events(recorder.outcomes)
    return metrics.text()


@reports(
    "events-dropped",
    metric="`berth_events_total` by outcome",
    log="`events dropped`, one line in a thousand",
)
async def test_drops_when_full(clock, caplog):
    """What does not fit into the queue is dropped and counted; recording never waits."""
    server = EventServer()
    server.hold = asyncio.Event()
    async with recording(clock, server=server, capacity=10, writes=1) as (recorder, _):
        for i in range(100):
            scheduled(recorder, regarding=replace(POD, name=f"p{i}"))
        dropped = recorder.statistics.dropped
        server.hold.set()
        await recorder.drain(60)

    assert dropped == 90
    assert ["events dropped, too many wait to be written dropped=1"] == caplog.messages
    assert {"written": 10, "failed": 0, "dropped": 90} == recorder.outcomes()
    assert b'berth_events_total{outcome="dropped"} 90.0' in shown(recorder)
    assert len(server.requests) == 10
    assert recorder.statistics.written == 10


@reports(
    "events-refused", metric="`berth_events_total` by outcome", log="`event not written`, with the cause"
)
@pytest.mark.parametrize(
    ("statuses", "attempts", "written"),
    [
        pytest.param([503, 500, 201], 3, 1, id="passes later"),
        pytest.param([503] * 20, 12, 0, id="never passes"),
        pytest.param([403], 1, 0, id="refused"),
        pytest.param([409], 1, 1, id="exists already"),
    ],
)
async def test_attempts(clock, statuses, attempts, written, caplog):
    """An event is tried twelve times, ten seconds apart, unless the server refuses it."""
    server = EventServer()
    server.answers = statuses
    async with recording(clock, server=server) as (recorder, _):
        scheduled(recorder)
        await eventually(lambda: recorder.outcomes() != {"written": 0, "failed": 0, "dropped": 0})

    assert attempts == len(server.requests)
    assert written == recorder.statistics.written
    assert clock.slept == [10.0] * (attempts - 1)
    assert (1 - written) == recorder.outcomes()["failed"] == len(caplog.messages)
    assert b'berth_events_total{outcome="failed"} %.1f' % (1 - written) in shown(recorder)
    assert all(line.startswith("event not written event=") for line in caplog.messages)


@pytest.mark.parametrize(("status", "level"), [(403, "INFO"), (400, "WARNING")])
async def test_an_event_that_is_refused_at_the_end(clock, caplog, status, level):
    """Without rights, as while Berth is uninstalled, the last events are no warning."""
    caplog.set_level("INFO", logger="berth.client")
    server = EventServer()
    server.answers = [status]
    async with recording(clock, server=server) as (recorder, _):
        scheduled(recorder)
        await recorder.drain(60)

    assert [level] == [one.levelname for one in caplog.records]


async def test_memory_is_bounded(clock):
    """Only so many events are remembered; the rest of a forgotten series is written first."""
    async with recording(clock, tracked=3) as (recorder, server):
        for _ in range(3):
            scheduled(recorder)
            await recorder.drain(60)
        for i in range(5):
            scheduled(recorder, regarding=replace(POD, name=f"other-{i}"))
        await recorder.drain(60)

    assert len(recorder._known) == 3
    assert {"series": {"count": 3, "lastObservedTime": "2026-01-02T03:04:05.000000Z"}} in [
        body for _, _, body in server.requests
    ]


def test_names_are_unique(clock):
    """Two events of one moment have different names."""
    recorder = EventRecorder(None, clock)
    names = {recorder._name("x" * 253, clock.wall()) for _ in range(10)}

    assert len(names) == 10
    assert {253} == {len(name) for name in names}


@pytest.mark.parametrize("note", ["short", "x" * 1024, "ä" * 1024])
def test_notes(note):
    """A note has at most 1024 bytes and never half a character."""
    cut = shortened(note)

    assert len(cut.encode()) <= 1024
    assert cut == note or cut.endswith(" ...")
