"""Files are bounded, each stands alone, and what a disk does not take is said."""

from pathlib import Path
from random import Random

import msgspec
import pytest

from berth.observer.reading import open_recording
from berth.recordings.cluster.events import Verb
from berth.recordings.cluster.files import FileBounds, RotatingFiles
from berth.recordings.errors import RecordingEndedError
from tests.unit.observer.kit import BEGAN, a_node


class Clock:
    """A clock that goes on by a second with each reading."""

    def __init__(self):
        self.seconds = BEGAN.timestamp()

    def wall(self):
        """The wall clock."""
        self.seconds += 1
        return self.seconds


def rotating(folder, listing, max_bytes=1, max_files=2):
    return RotatingFiles(
        folder, FileBounds(max_bytes, max_files), Clock(), lambda: listing, version="test", anonymized=False
    )


def documents(count, seed=1):
    """Nodes that do not pack well."""
    chance = Random(seed)
    return [
        msgspec.json.encode(a_node(f"n{i}", labels={"a": chance.randbytes(1000).hex()})) for i in range(count)
    ]


def read(path):
    """The events of a file, and what it lacks."""
    with open_recording(path) as recording:
        return [(event.verb, event.obj.name) for event in recording.events()], recording


def test_each_file_begins_with_a_listing_and_the_oldest_go(tmp_path):
    files = rotating(tmp_path, documents(3))
    files.begin()
    for document in documents(2_000, seed=2):
        files.write(Verb.UPDATE, document)
        if files.files > 3:
            break
    files.close()
    assert files.files == 4
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 2
    for path in kept:
        events, recording = read(path)
        assert events[:3] == [(Verb.ADD, f"n{i}") for i in range(3)]
        assert (recording.read.header.objects, recording.warnings) == (3, [])


def test_a_file_has_more_than_its_listing(tmp_path):
    """A cluster whose listing is larger than a file may be is not listed again and again."""
    files = rotating(tmp_path, documents(300), max_files=10)
    files.begin()
    for document in documents(150, seed=2):
        files.write(Verb.UPDATE, document)
    assert files.files == 1
    for document in documents(400, seed=3):
        files.write(Verb.UPDATE, document)
    assert files.files == 2
    files.close()


def test_files_of_earlier_runs_count(tmp_path):
    for name in ("20200101", "20200102", "20200103"):
        (tmp_path / f"{name}.cluster.zst").write_bytes(b"")
    (tmp_path / "another").write_bytes(b"")
    files = rotating(tmp_path, [])
    files.begin()
    files.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["20200103.cluster.zst", "20261123T084442.214360Z.cluster.gz", "another"]


def test_a_file_can_be_read_while_it_grows(tmp_path):
    files = rotating(tmp_path, documents(2))
    files.begin()
    files.write(Verb.DELETE, documents(1)[0])
    files.flush()
    (path,) = tmp_path.iterdir()
    events, recording = read(path)
    assert events == [(Verb.ADD, "n0"), (Verb.ADD, "n1"), (Verb.DELETE, "n0")]
    assert recording.warnings == [f"{path} is cut off: what is there was replayed"]
    files.close()


def test_a_file_that_is_damaged_is_read_as_far_as_it_goes(tmp_path):
    files = rotating(tmp_path, documents(200))
    files.begin()
    files.close()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    events, recording = read(path)
    assert 0 < len(events) < 200
    assert recording.warnings == [f"{path} is cut off: what is there was replayed"]


def test_a_folder_that_cannot_be_made_is_named():
    files = rotating(Path("/dev/null/folder"), [])
    with pytest.raises(
        RecordingEndedError, match=r"/dev/null/folder: Not a directory; name a folder that has"
    ):
        files.begin()
