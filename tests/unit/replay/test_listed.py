"""Calls that list their candidates, put to plugins that read lists and to plugins that do not."""

import pytest

from berth.recordings.calls.frames import framed
from berth.replay import ReplayOptions, UnusableRecordingError, read_recording, replay
from berth_plugin_proto import recording_pb2, scheduling_pb2
from tests.unit.conformance.broken import Fault, served
from tests.unit.conformance.listing import by_bitmap, lists, pick, written
from tests.unit.replay.kit import Teams, a_run

CALLS = 5
NODES = 4
ROWS = {"a": [1, 3], "b": [1], "c": [0, 3]}
"""What is listed for each pod: n1 and red, n1, red and blue. The first and the last call bring node 3."""


class Changed(Teams):
    """Has another opinion of the pods on one node, and of one score."""

    def filter(self, pod, node):
        return "not on a Friday" if node.name == "red" else super().filter(pod, node)

    def score(self, pod, node):
        return 50 if node.name == "blue" else super().score(pod, node)


async def rewritten(path, change):
    """A run's recording whose FilterScore calls and answers are as `change(request, response)` makes them."""
    file = read_recording(await a_run(path))
    answers = {each.answer.id: each.answer for each in file.entries if each.HasField("answer")}
    for entry in file.entries:
        if entry.call.HasField("filter_score"):
            change(entry.call.filter_score, answers[entry.call.id].filter_score)
    header = recording_pb2.RecordingEntry(header=file.header)
    path.write_bytes(b"".join(map(framed, [header, *file.entries])))
    return path


def listed(request, response):
    """Ask about some nodes by a list, and keep the answers about them."""
    rows = ROWS[request.call.pod.name]
    request.candidates.indices = written(rows)
    pick(response, rows)


def nothing_listed(request, response):
    """Ask about no node by a list."""
    request.candidates.indices = b""
    pick(response, [])


def as_bitmap(request, _response):
    """Ask about the same nodes by a bitmap."""
    request.candidates.SetInParent()
    request.CopyFrom(by_bitmap(request, ROWS[request.call.pod.name], NODES))


def as_it_is(_request, response):
    return response


def listed_entries_only(request, response):
    """Answer a bitmap as if it were a list."""
    return pick(response, ROWS[request.call.pod.name])


async def put_to(path, plugin, *, announces, answer=as_it_is):
    """What comes of it with that plugin, and the candidates that it is asked about."""
    asked = []

    async def call(_server, name, request, proceed):
        if name == "FilterScore":
            asked.append(request.candidates)
            assert announces or not lists(request)
        response = await proceed(request)
        if name == "Handshake":
            response.capabilities.listed_candidates = announces
        return answer(request, response) if name == "FilterScore" else response

    async with served(Fault(call, plugin=plugin)) as options:
        return await replay(path, ReplayOptions(options.address)), asked


def said(outcome):
    return [(each.pod, c.kind, c.name, c.was, c.now) for each in outcome.differences for c in each.changes]


@pytest.mark.parametrize("announces", [True, False])
async def test_same_plugin(tmp_path, announces):
    """The same plugin gives the same answers, whether it reads lists or has to be asked by bitmaps."""
    path = await rewritten(tmp_path / "r", listed)
    outcome, asked = await put_to(path, Teams, announces=announces)

    assert ([], CALLS) == (said(outcome), outcome.compared)
    forms = [scheduling_pb2.Candidates(indices=written(rows)) for rows in ROWS.values()]
    bitmaps = [scheduling_pb2.Candidates(bitmap=bytes([bits])) for bits in (0b1010, 0b10, 0b1001)]
    assert (forms if announces else bitmaps) == asked


@pytest.mark.parametrize("announces", [True, False])
async def test_changed_plugin(tmp_path, announces):
    """What is answered otherwise is named by its node, entry by entry, in whichever form it was asked."""
    path = await rewritten(tmp_path / "r", listed)
    outcome, _ = await put_to(path, Changed, announces=announces)

    assert [
        ("default/a", "node", "red", "passes", "UNSCHEDULABLE: not on a Friday"),
        ("default/c", "node", "red", "UNSCHEDULABLE: another team's node", "UNSCHEDULABLE: not on a Friday"),
        ("default/c", "score", "blue", "4", "50"),
    ] == said(outcome)


async def test_the_same_bytes_to_another_question(tmp_path):
    """Entries for the listed nodes alone are no answer to a bitmap, though they were one to the list."""
    path = await rewritten(tmp_path / "r", listed)
    outcome, _ = await put_to(path, Teams, announces=False, answer=listed_entries_only)

    assert [
        "breaks the protocol: 2 bytes of uint8 scores for 4 nodes",
        "breaks the protocol: 1 bytes of uint8 scores for 4 nodes",
        "breaks the protocol: 2 verdicts for 4 nodes",
    ] == [now for *_, now in said(outcome)]


@pytest.mark.parametrize("announces", [True, False])
async def test_nothing_listed(tmp_path, announces):
    """An empty list is one: the plugin is asked about no node."""
    path = await rewritten(tmp_path / "r", nothing_listed)
    outcome, asked = await put_to(path, Changed, announces=announces)

    assert ([], CALLS) == (said(outcome), outcome.compared)
    form = {"indices": b""} if announces else {"bitmap": b"\0"}
    assert [scheduling_pb2.Candidates(**form)] * 3 == asked


async def test_a_bitmap_stays_one(tmp_path):
    """A plugin that reads lists reads bitmaps, too."""
    path = await rewritten(tmp_path / "r", as_bitmap)
    outcome, asked = await put_to(path, Teams, announces=True)

    assert ([], CALLS) == (said(outcome), outcome.compared)
    assert not any(each.HasField("indices") for each in asked)


def beyond(request, _response):
    request.candidates.indices = written([0, 7])


async def test_nodes_that_are_gone(tmp_path):
    """A list of nodes that are not there, of which no plugin can say anything, ends no replay."""
    path = await rewritten(tmp_path / "r", beyond)
    outcome, _ = await put_to(path, Teams, announces=False)

    assert CALLS == outcome.compared
    assert {"breaks the protocol: index 7 of 4 nodes is listed"} == {was for *_, was, _ in said(outcome)}


def cut_off(request, _response):
    request.candidates.indices = b"\0"


async def test_a_list_that_is_none(tmp_path):
    """Nothing can be made of such a list, and the file is no use."""
    path = await rewritten(tmp_path / "r", cut_off)

    with pytest.raises(UnusableRecordingError, match="lists nodes in 1 bytes"):
        await put_to(path, Teams, announces=False)
