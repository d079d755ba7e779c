"""What a recording holds, how large it gets, how it ends, and what is left of one that is cut off."""

import asyncio

import grpc
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.transport.recorded_stub import RecordedStub
from berth.recordings.calls import recording as recordings
from berth.recordings.calls.frames import RecordingFrameError, RecordingFrames, framed
from berth.replay import UnusableRecordingError, read_recording
from berth.replay.writing import RecordingWriter
from berth_plugin_proto import identity_pb2, queueing_pb2, recording_pb2, state_pb2
from tests.suite import PATIENCE_SECONDS
from tests.unit.out_of_tree.scripted import Harness, Scripted, hosted, passing, until
from tests.unit.replay.kit import Teams, a_run, at_work, begun, replayed, tried, written


def kinds(file):
    """Which messages a file holds, in order."""
    return [entry.WhichOneof("message") for entry in file.entries]


async def test_what_it_holds(tmp_path):
    """It begins with words, arguments and state, and holds every call before its answer, with its time."""
    file = read_recording(await a_run(tmp_path / "r"))
    calls = [entry for entry in file.entries if entry.HasField("call")]
    answers = {entry.answer.id: entry for entry in file.entries if entry.HasField("answer")}
    offsets = [entry.offset.ToNanoseconds() for entry in file.entries]

    assert ["handshake", "configure", "configured", "sync", "sync", "sync", "call"] == kinds(file)[:7]
    assert ("teams", 1, []) == (file.header.plugin, file.header.format, file.warnings)
    assert {entry.call.id for entry in calls} == answers.keys()
    assert offsets == sorted(offsets)


async def test_calls_cost_nothing_otherwise(tmp_path):
    """The connection's own stub is asked before and after a recording, and no other."""
    async with at_work(Teams()) as harness:
        connection, version = harness.connection, harness.host.versions["teams"]
        own = connection.stub("Filter")
        recording = begun(harness)
        assert isinstance(connection.stub("Filter"), RecordedStub)
        version.stop_recording(recordings.STOPPED)
        await written(recording, tmp_path / "r")

        assert own is connection.stub("Filter")
        assert connection.recording is None


def test_the_plugin_is_not_sent_a_recordings_state(tmp_path):
    """The state that goes into a recording does not count as sent to the plugin: it hears what it has to."""
    harness = Harness(tmp_path / "p.sock")
    harness.add_nodes("n1")
    feed = harness.plugin.caller.feed
    feed.narrow(identity_pb2.StateInterest(nodes=True, pods=True, pods_without_status=True))
    assert list(feed.transfer())
    pod = harness.pod().placed_on("n1")
    harness.cache.assume_pod(pod)
    harness.step()
    harness.cache.add_pod(pod)
    last = list(feed.picture())[-1]
    harness.step()
    changes = feed.since(2)[0].changes

    assert (2, 1) == (last.commit.generation, last.commit.node_count)
    assert [state_pb2.POD_STAGE_PLACED] == [change.pod_upsert.stage for change in changes]


async def test_cut_off_anywhere(tmp_path):
    """Whatever is left of a file is read up to its last whole entry, and where it was cut off is said."""
    path = await a_run(tmp_path / "r")
    whole, data, cut = kinds(read_recording(path)), path.read_bytes(), tmp_path / "cut"
    ends = RecordingFrames()
    boundaries = [0, *(ends.offset for _ in ends.feed(data))]
    for size in sorted({*boundaries[:-1], *range(0, len(data), 97)}):
        cut.write_bytes(data[:size])
        at = max(each for each in boundaries if each <= size)
        if at == 0:
            with pytest.raises(UnusableRecordingError, match="is no recording"):
                read_recording(cut)
            continue
        file = read_recording(cut)
        said = f"at byte {at} of {size}" if at < size else f"ends at byte {size} without its last entry"

        assert whole[: boundaries.index(at) - 1] == kinds(file)
        assert said in file.warnings[0]


async def test_cut_off_is_replayed(tmp_path):
    """What is whole of a file that was cut off is compared, and the report says that it was."""
    path = await a_run(tmp_path / "r")
    path.write_bytes(path.read_bytes()[:-150])
    outcome = await replayed(path, Teams())

    assert 0 < outcome.compared < 5
    assert "cut off" in outcome.warnings[0]


async def test_damaged(tmp_path):
    """From bytes that are no entry on nothing is used."""
    path = await a_run(tmp_path / "r")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"\x04\xff\xff\xff\xff")

    assert f"can't be read from byte {size} of {size + 5} on" in read_recording(path).warnings[0]


def test_a_length_that_is_none():
    """Ten bytes that all say that more of a length follows are none."""
    with pytest.raises(RecordingFrameError, match="no length"):
        list(RecordingFrames().feed(b"\xff" * 10))


def test_pieces_of_any_size():
    """Entries come out the same in whatever pieces their bytes come in."""
    entries = [
        recording_pb2.RecordingEntry(header=recording_pb2.RecordingHeader(plugin="x" * n))
        for n in (1, 300, 0)
    ]
    data = b"".join(map(framed, entries))
    for size in (1, 2, 7, 1000):
        frames = RecordingFrames()
        pieces = [data[i : i + size] for i in range(0, len(data), size)]

        assert entries == [
            recording_pb2.RecordingEntry.FromString(each) for piece in pieces for each in frames.feed(piece)
        ]
        assert (len(data), 0) == (frames.offset, frames.incomplete)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"format": 2, "plugin": "p", "host_version": "9.9"}, "format 2.*replay it with berth 9.9 or newer"),
        ({"plugin": "p"}, "is no recording"),
    ],
)
def test_other_formats(tmp_path, header, says):
    """A later format names the version that reads it; a header without one is none."""
    path = tmp_path / "r"
    path.write_bytes(framed(recording_pb2.RecordingEntry(header=recording_pb2.RecordingHeader(**header))))

    with pytest.raises(UnusableRecordingError, match=says):
        read_recording(path)


async def test_size(tmp_path):
    """A recording never gets larger than it may, and its end says that this is why it ended."""
    whole = (await a_run(tmp_path / "whole")).stat().st_size
    async with at_work(Teams()) as harness:
        recording = begun(harness, max_bytes=whole - 500)
        for name in "abcdefgh":
            await tried(harness, name)
        path = await written(recording, tmp_path / "r")

    assert whole - 2000 < path.stat().st_size <= whole - 500
    assert "the file had the size that was allowed" in read_recording(path).warnings[0]


async def test_too_small_for_the_state(tmp_path):
    """A state that does not fit makes a recording that can't be replayed, and says what to do."""
    async with at_work(Teams()) as harness:
        recording = begun(harness, max_bytes=600)
        await tried(harness, "a")
        path = await written(recording, tmp_path / "r")

    assert path.stat().st_size <= 600
    with pytest.raises(
        UnusableRecordingError, match=r"before the state is whole: record more of it \(--max-size\)"
    ):
        await replayed(path, Teams())


async def test_a_reader_that_does_not_read(tmp_path, monkeypatch):
    """What waits to be written is bounded: a recording that is not read ends, and says so."""
    monkeypatch.setattr(recordings, "MAX_BUFFERED", 3000)
    async with at_work(Teams()) as harness:
        recording = begun(harness)
        for name in "abcdefgh":
            await tried(harness, name)
        assert recording.over
        path = await written(recording, tmp_path / "r")

    assert "more came than could be written in time" in read_recording(path).warnings[0]


async def test_the_plugin_leaves(tmp_path):
    """The end of a plugin is the end of its recording."""
    async with at_work(Teams()) as harness:
        recording = begun(harness)
        await tried(harness, "a")
        await harness.host.versions["teams"].close()
        path = await written(recording, tmp_path / "r")

    assert "the plugin was detached or replaced" in read_recording(path).warnings[0]


async def test_seconds(tmp_path):
    """A recording for some time ends in order, with the answers to what was asked within that time."""
    async with at_work(Teams()) as harness:
        recording = begun(harness, seconds=0.01)
        await tried(harness, "a")
        file = read_recording(await written(recording, tmp_path / "r"))

    assert [] == file.warnings


async def test_refusals_and_silence(tmp_path):
    """A call that fails is recorded with why; one whose caller stopped waiting, too."""
    scripted = Scripted()

    async def refuse(_request, context):
        await context.abort(grpc.StatusCode.INTERNAL, "no")

    async def wait(_request, _context):
        await asyncio.Event().wait()

    fails = {ExtensionPoint.SCORE: FailurePolicy.FAIL}
    async with hosted(scripted, policy=fails) as harness:
        await harness.up()
        recording = harness.host.versions["scripted"].record(recordings.Extent())
        for reply, seconds in ((refuse, PATIENCE_SECONDS), (wait, 0.05)):
            scripted.replies["FilterScore"] = reply
            harness.allow(seconds)
            with pytest.raises(SidecarError):
                await harness.filter()
        recording.end(1)
        file = read_recording(await written(recording, tmp_path / "r"))

    # After FilterScore has failed the verdicts are asked for alone, which is answered.
    answers = [entry.answer for entry in file.entries if entry.HasField("answer")]
    errors = [answer.error for answer in answers if answer.HasField("error")]
    assert [(grpc.StatusCode.INTERNAL.value[0], "no")] == [(errors[0].code, errors[0].message)]
    assert errors[1].code in {grpc.StatusCode.CANCELLED.value[0], grpc.StatusCode.DEADLINE_EXCEEDED.value[0]}


async def test_news_and_another_connection(tmp_path):
    """What the plugin reports is recorded, and its words when it is greeted again."""
    scripted = Scripted()

    async def pass_all(request, _context):
        return passing(request)

    scripted.replies["FilterScore"] = pass_all
    async with hosted(scripted) as harness:
        await harness.up()
        version = harness.host.versions["scripted"]
        recording = version.record(recordings.Extent())
        version.connection._exchanged(queueing_pb2.RequeueResponse(cause="price"))
        version.connection.disconnect("a test says so")
        await until(lambda: version.connection.starts == 2)
        await harness.filter()
        recording.end(1)
        file = read_recording(await written(recording, tmp_path / "r"))

    assert ["requeue", "handshake", "configure", "configured"] == [
        kind for kind in kinds(file)[5:] if kind not in ("sync", "synced", "call", "answer")
    ]
    assert "filter_score" in {each.answer.WhichOneof("answer") for each in file.entries if each.answer.id}


async def test_the_writer_is_stopped(tmp_path):
    """A file that is ended where it is has its last entry, whatever piece came in part."""
    data = (await a_run(tmp_path / "r")).read_bytes()
    path = tmp_path / "w"
    with path.open("wb") as file:
        writer = RecordingWriter(file.write)
        writer.take(data[:-150])
        writer.stop()
    read = read_recording(path)

    assert ["the recording was stopped"] == read.warnings
    assert writer.summary.endswith(f"{path.stat().st_size} bytes: stopped")


def test_the_writer_is_given_nonsense():
    """What is no recording is not written."""
    with pytest.raises(UnusableRecordingError, match="what came is no recording"):
        RecordingWriter(pytest.fail).take(b"\x04\xff\xff\xff\xff")


def test_a_reason_of_a_later_version(tmp_path):
    """An end for a reason that is not known yet is reported as such."""
    path = tmp_path / "r"
    header = recording_pb2.RecordingHeader(format=1, plugin="p")
    end = recording_pb2.RecordingEnd(reason=99)
    path.write_bytes(
        framed(recording_pb2.RecordingEntry(header=header)) + framed(recording_pb2.RecordingEntry(end=end))
    )

    assert ["the recording ended for reason 99, which is not known here"] == read_recording(path).warnings
