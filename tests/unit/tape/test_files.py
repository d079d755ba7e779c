"""A recording's file is bounded, and a slow or full disk costs the recording alone."""

import gzip
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from berth.config.loading import load
from berth.objects.pods.pod import Pod
from berth.recordings.core.files import TapeFile
from berth.recordings.core.header import TapeHeader
from berth.recordings.core.spans import EVENT, FLUSH, TapeSpan
from berth.recordings.line_files import LineFile, remove_oldest
from berth.simulation.recordings.tape_file import open_tape
from tests.failures.reporting import reports
from tests.unit.simulation.kit import cluster, pod


@pytest.fixture
def header():
    return TapeHeader.of(
        load(None),
        version="1",
        began=datetime(2026, 11, 23, tzinfo=UTC),
        seed=1,
        max_in_unschedulable_seconds=300.0,
    )


def reason(path):
    """Why the recording ended."""
    return json.loads(gzip.decompress(path.read_bytes()).splitlines()[-1])["a"][0]


def test_a_file_has_every_span(tmp_path, header):
    path = tmp_path / "a"
    file = TapeFile(LineFile(path, header), 1 << 20)
    for _ in range(100):
        file(TapeSpan(FLUSH, ()))
    file.close()
    with open_tape(path) as reading:
        assert [span.i for span in reading.spans()] == [FLUSH] * 100
    assert (file.written, file.dropped, reading.warnings) == (100, 0, [])


def test_only_its_owner_reads_a_recording(tmp_path, header):
    path = tmp_path / "a"
    TapeFile(LineFile(path, header), 1 << 20).close()

    assert 0o600 == path.stat().st_mode & 0o777


def test_readings_are_read_as_they_were_written(tmp_path, header):
    path = tmp_path / "a"
    file = TapeFile(LineFile(path, header), 1 << 20)
    for reading in (5, 3, 9):
        span = TapeSpan(FLUSH, ())
        span.now, span.monotonic, span.cpu = [reading, reading + 1], [10 * reading], []
        file(span)
    file.close()
    with open_tape(path) as reading:
        found = [(span.n, span.m, span.c) for span in reading.spans()]
    assert found == [([5, 6], [50], []), ([3, 4], [30], []), ([9, 10], [90], [])]


@reports("recording-ends", log="`recording ended`, with the reason")
def test_a_file_ends_at_its_size(tmp_path, header, caplog):
    path, least = tmp_path / "a", 4096
    file = TapeFile(LineFile(path, header), least)
    chance = Random(1)
    for _ in range(20_000):
        file(TapeSpan(EVENT, (chance.randbytes(40).hex(),)))
    file.close()
    assert least <= path.stat().st_size < least + (1 << 18)
    assert reason(path) == "size"
    assert file.written + file.dropped == 20_000
    assert file.dropped > 0
    assert f"recording ended file={path} reason=size" in caplog.messages


def test_what_came_after_the_end_is_dropped(tmp_path, header):
    file = TapeFile(LineFile(tmp_path / "a", header), 1 << 20)
    file.close()
    file(TapeSpan(FLUSH, ()))
    assert file.dropped == 1


def test_a_disk_that_does_not_write_ends_the_recording_and_blocks_nothing(tmp_path, header, monkeypatch):
    held = threading.Event()
    real = gzip.GzipFile.write

    def slow(self, data):
        held.wait()
        return real(self, data)

    begun = LineFile(tmp_path / "a", header)
    monkeypatch.setattr(gzip.GzipFile, "write", slow)
    file = TapeFile(begun, 1 << 20, max_waiting=100)
    for _ in range(1_000):
        file(TapeSpan(FLUSH, ()))
    assert file.dropped == 900
    held.set()
    file.close()
    assert file.dropped == 900
    assert reason(tmp_path / "a") == "behind"
    assert file.written == 100


@reports(
    "recording-ends",
    log="`recording ended`, with the system's words, such as `No space left on device`",
)
def test_a_full_disk_ends_the_recording(header, caplog):
    file = TapeFile(LineFile(Path("/dev/full"), header), 1 << 20)
    for _ in range(10):
        file(TapeSpan(FLUSH, ()))
    file.close()
    assert "recording ended file=/dev/full err=[Errno 28] No space left on device" in caplog.messages
    file(TapeSpan(FLUSH, ()))
    assert file.dropped > 0


def test_the_oldest_recordings_go_first(tmp_path):
    for name in "abcd":
        (tmp_path / f"{name}.tape.gz").write_bytes(bytes(100))
    (tmp_path / "another").write_bytes(bytes(1000))
    remove_oldest(tmp_path, ["*.tape.gz"], max_bytes=250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "c.tape.gz", "d.tape.gz"]


def test_objects_are_recorded_without_what_no_decision_reads(tmp_path, header):
    document = pod("a")
    document["spec"]["containers"][0] |= {"env": [{"name": "KEY", "value": "secret"}], "command": ["secret"]}
    (obj,) = cluster(tmp_path, document).of(Pod).values()
    path = tmp_path / "a"
    file = TapeFile(LineFile(path, header), 1 << 20)
    file(TapeSpan(EVENT, ("add", "Pod", obj)))
    file.close()
    recorded = gzip.decompress(path.read_bytes())
    assert b'"name":"a"' in recorded
    assert b"secret" not in recorded
