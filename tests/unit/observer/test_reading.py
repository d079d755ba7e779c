"""What an observer's file has to be made of, and what is said of one that is not."""

import json
import re

import pytest
import zstandard

from berth.observer.reading import open_recording
from berth.simulation.errors import InputError
from berth.simulation.reading.recorded_events import is_of_cluster
from tests.unit.observer.kit import a_node, a_pod, lines, observer_file, simulator_file
from tests.unit.simulation.kit import thing


def read(path):
    with open_recording(path) as recording:
        found = [(event.number, event.verb.value, event.obj.key) for event in recording.events()]
        return found, recording


def test_every_event_is_read_in_order(tmp_path):
    events = [("Add", a_node("n")), ("Add", a_pod("p")), ("Update", a_pod("p")), ("Delete", a_node("n"))]
    found, recording = read(observer_file(tmp_path / "a", *events))
    assert found == [(2, "Add", "n"), (3, "Add", "default/p"), (4, "Update", "default/p"), (5, "Delete", "n")]
    assert recording.warnings == []


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path):
    path = observer_file(tmp_path / "a", ("Add", a_node("n")), reason=None)
    found, recording = read(path)
    assert len(found) == 1
    assert recording.warnings == [f"{path} is cut off: what is there was replayed"]


def test_events_of_kinds_that_no_decision_reads_are_left_out(tmp_path):
    found, recording = read(simulator_file(tmp_path / "a", ("Add", thing("ConfigMap", "c"))))
    assert (found, recording.left_out) == ([], 1)


def test_null_fields_of_a_recorder_are_absent(tmp_path):
    """Go writes creationTimestamp: null of an object that was never stored."""
    document = a_node("n")
    document["metadata"]["creationTimestamp"] = None
    assert read(simulator_file(tmp_path / "a", ("Add", document)))[0] == [(1, "Add", "n")]


def test_nanoseconds_and_zones_are_read(tmp_path):
    path = simulator_file(tmp_path / "a", ("Add", a_node("n")))
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'"time": "[^"]*"', '"time": "2024-05-01T12:00:00.123456789+09:00"', text))
    with open_recording(path) as recording:
        (event,) = recording.events()
    assert event.at.isoformat(timespec="milliseconds") == "2024-05-01T03:00:00.123+00:00"


def event(**fields):
    """The line of an event, with these fields."""
    return json.dumps({"time": "2026-01-01T00:00:00Z", "event": "Add", "resource": a_node("n"), **fields})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[]", "Expected `object`"),
        (event(event="Gone"), "Invalid enum value 'Gone'"),
        (event(resource=[]), "Expected `object`"),
        (event(resource={}), "resource.apiVersion"),
        (event(time="2026-01-01T00:00:00"), "time: found 2026-01-01T00:00:00, of no recording; record anew"),
        (event(time="0001-01-01T00:00:00Z"), "time: found 0001-01-01"),
        (event(resource=thing("Node", "n", spec={"taints": 1})), "Node n: spec.taints"),
    ],
)
def test_a_line_that_is_no_event_is_refused(tmp_path, line, says):
    path = tmp_path / "a"
    path.write_text("\n".join([*lines(("Add", a_node("n"))), line, ""]), encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(says)) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}:2: ")


def test_a_line_without_end_ends_the_reading(tmp_path):
    path = tmp_path / "a"
    text = "\n".join(lines(("Add", a_node("n")))) + "\n" + "x" * (9 << 20)
    path.write_bytes(zstandard.compress(text.encode()))
    assert len(read(path)[0]) == 1


def test_other_files_are_none_of_a_cluster(tmp_path):
    path = tmp_path / "a"
    for text in ("", "{}", '{"kind": "SchedulerRecording"}', "\x00"):
        path.write_text(text, encoding="utf-8")
        assert not is_of_cluster(path)


def test_a_later_format_is_refused(tmp_path):
    path = tmp_path / "a"
    head = '{"kind":"ClusterRecording","apiVersion":"x","format":2,"version":"9.0","objects":0,'
    path.write_text(head + '"began":"2026-01-01T00:00:00Z"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"has format 2.*replay it with berth 9\.0 or newer"):
        is_of_cluster(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file or directory; give a file that can be read"):
        is_of_cluster(tmp_path / "none")
