"""A live cluster is written to files as it changes, as far as decisions read it, and never written to."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from berth.client.api import Api
from berth.demo.submission import create_all
from berth.framework.clock import SYSTEM_CLOCK
from berth.observer.observing import Observer
from berth.observer.reading import open_recording
from berth.recordings.cluster.files import FileBounds, RotatingFiles
from berth.recordings.errors import RecordingEndedError
from berth.simulation.reading.anonymize import Anonymizer
from berth.simulation.reading.packed_lines import unpacked
from tests.unit.observer.kit import a_node, a_pod
from tests.unit.scheduler_at_work import eventually

NODES = "/api/v1/nodes"
LARGE = FileBounds(1 << 30, 10)


@asynccontextmanager
async def recorded(transport, folder, anonymizer=None, bounds=LARGE):
    """The files of an observer that has begun, and ends in order."""
    observer = Observer(transport, anonymizer)
    files = RotatingFiles(
        folder, bounds, SYSTEM_CLOCK, observer.listing, version="test", anonymized=anonymizer is not None
    )
    running = asyncio.create_task(observer.run(files))
    await eventually(lambda: running.done() or files.files)
    yield files
    running.cancel()
    await asyncio.wait([running])
    files.close()


async def patched(transport, path, **fields):
    await Api(transport).call(
        "PATCH", path, json.dumps(fields).encode(), content_type="application/merge-patch+json"
    )


def events(path):
    """Verb and name of each event, and the whole of the file as text."""
    with open_recording(path) as recording:
        found = [
            (event.verb.value, event.obj.name) for event in recording.events() if event.kind.name in KINDS
        ]
        assert recording.warnings == []
    return found


KINDS = {"Node", "Pod"}


def text(path):
    with path.open("rb") as file:
        return unpacked(file).read()


async def test_a_file_begins_with_what_is_there_and_goes_on_with_what_happens(transport, tmp_path):
    await create_all(Api(transport), [a_node("n0"), a_node("n1")])
    async with recorded(transport, tmp_path) as files:
        await create_all(Api(transport), [a_pod("p")])
        await patched(transport, f"{NODES}/n1", spec={"unschedulable": True})
        await Api(transport).call("DELETE", f"{NODES}/n0")
        await eventually(lambda: files.events >= 3)
    (path,) = tmp_path.iterdir()
    assert events(path)[:2] == [("Add", "n0"), ("Add", "n1")]
    assert sorted(events(path)[2:]) == [("Add", "p"), ("Delete", "n0"), ("Update", "n1")]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_no_decision_reads_is_neither_written_nor_an_event(transport, tmp_path):
    secret = a_pod("p")
    secret["spec"]["containers"][0] |= {"env": [{"name": "KEY", "value": "secret"}]}
    await create_all(Api(transport), [a_node("n0")])
    async with recorded(transport, tmp_path) as files:
        heartbeat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-23T08:00:00Z"}]
        await patched(transport, f"{NODES}/n0/status", status={"conditions": heartbeat})
        await create_all(Api(transport), [secret])
        await eventually(lambda: files.events)
        await patched(transport, f"{NODES}/n0", spec={"unschedulable": True})
        await eventually(lambda: files.events >= 2)
    (path,) = tmp_path.iterdir()
    assert events(path) == [("Add", "n0"), ("Add", "p"), ("Update", "n0")]
    assert b"secret" not in text(path)


async def test_an_anonymized_recording_names_nothing(transport, tmp_path):
    await create_all(Api(transport), [a_node("n0")])
    async with recorded(transport, tmp_path, Anonymizer(b"key")) as files:
        await create_all(Api(transport), [a_node("secret-name")])
        await Api(transport).call("DELETE", f"{NODES}/secret-name")
        await eventually(lambda: files.events >= 2)
    (path,) = tmp_path.iterdir()
    (_, node), *others = events(path)
    assert node != "n0"
    assert [verb for verb, _ in others] == ["Add", "Delete"]
    assert len({name for _, name in others}) == 1
    assert b"secret-name" not in text(path)


async def test_a_folder_that_cannot_be_written_ends_the_observer(transport, tmp_path):
    path = tmp_path / "file"
    path.write_text("", encoding="utf-8")
    observer = Observer(transport)
    files = RotatingFiles(path, LARGE, SYSTEM_CLOCK, observer.listing, version="test", anonymized=False)
    with pytest.raises(RecordingEndedError, match=r"file: File exists; name a folder that has room"):
        await observer.run(files)


async def test_a_full_disk_ends_the_observer(transport, tmp_path):
    """What fails in the midst of a watch is not taken for an object that cannot be read."""
    observer = Observer(transport)
    files = RotatingFiles(
        tmp_path, FileBounds(1, 1), SYSTEM_CLOCK, observer.listing, version="", anonymized=False
    )
    running = asyncio.create_task(observer.run(files))
    await eventually(lambda: files.files)
    files._file._out = Full()
    await create_all(Api(transport), [a_node("n0")])
    await asyncio.wait([running])
    assert "No space left on device" in str(running.exception())
    assert isinstance(running.exception(), RecordingEndedError)
    with pytest.raises(RecordingEndedError, match="No space left"):
        files.close()


class Full:
    """A stream to a disk without room."""

    def write(self, data):
        raise OSError(28, "No space left on device", len(data))

    def flush(self):
        """Nothing waits."""


async def test_kinds_that_cannot_be_listed_are_named(transport, tmp_path):
    observer = Observer(transport)
    files = RotatingFiles(tmp_path, LARGE, SYSTEM_CLOCK, observer.listing, version="test", anonymized=False)
    with pytest.raises(
        RecordingEndedError, match=r"nodes, pods: not listed within 0 s; recording needs the verbs"
    ):
        await observer.run(files, listed_seconds=0.0)
