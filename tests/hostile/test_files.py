"""Files that simulate, deschedule, snapshot, replay and the sandbox are given: small ones stay small."""

import gzip
import json

import pytest
import zstandard

from berth.demo.dataset.documents import REPEATED, parse_documents
from berth.demo.dataset.errors import BrokenDocumentError
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import read_cluster, read_snapshot
from tests.hostile.growth import memory_of
from tests.hostile.work import growth


def bomb(levels, first, each):
    """Levels of lists or maps, each of which has ten times the one before."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, levels):
        ten = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {each.format(ten)}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("first", "each"),
    [
        pytest.param("[x, x, x]", "[{}]", id="lists"),
        pytest.param("{k: v}", "{{a: [{}]}}", id="maps"),
        pytest.param("{k: v}", "{{<<: [{}]}}", id="merged maps"),
    ],
)
def test_a_few_lines_of_aliases_are_no_billions_of_values(first, each):
    with pytest.raises(BrokenDocumentError, match="more values by aliases than it may have"):
        list(parse_documents("bomb", bomb(30, first, each), is_json=False))


def test_aliases_that_repeat_a_little_are_read():
    text = b"a: &a {k: [1, 2]}\nb: {<<: [*a, *a], c: *a}\n"

    ((_, document),) = parse_documents("file", text, is_json=False)

    assert {"a": {"k": [1, 2]}, "b": {"k": [1, 2], "c": {"k": [1, 2]}}} == document


def test_a_document_without_aliases_may_be_of_any_size():
    document = {"items": [{"a": 1}] * REPEATED}

    ((_, found),) = parse_documents("file", json.dumps(document).encode(), is_json=True)

    assert document == found


def test_what_reading_costs_is_linear():
    def reading(n):
        text = "\n".join(f"- {{k{i}: [v, v]}}" for i in range(n)).encode()
        return lambda: list(parse_documents("file", text, is_json=False))

    assert growth(reading, 200) < 1.1


def test_documents_of_a_json_file_are_read_without_copies_of_the_rest():
    """A copy for each document would make a file of many cost their square."""
    data = b"\n".join(b'{"a": "%s"}' % (b"x" * 10_000) for _ in range(100))

    most, _ = memory_of(lambda: sum(1 for _ in parse_documents("file", data, is_json=True)))

    assert most < 1.5 * len(data), "the text, and one document"


def header():
    return b'{"apiVersion":"simulation.berth.dev/v1alpha1","kind":"ClusterSnapshot"}\n'


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        pytest.param(
            lambda: header() + b" " * (64 << 20), "more than 8388608 bytes", id="a line without end"
        ),
        pytest.param(lambda: header() + b"[" * 100_000 + b"\n", "no JSON", id="a deep line"),
        pytest.param(lambda: header() + rb'{"a":"\ud800"}' + b"\n", "no JSON", id="half of a surrogate"),
        pytest.param(lambda: header() + b'{"a":"\xff"}\n', "no JSON", id="no UTF-8"),
        pytest.param(lambda: header() + b"{}\n" * 3, "apiVersion", id="no object"),
        pytest.param(header, "cut off", id="no end"),
    ],
)
def test_a_packed_snapshot_that_is_none(tmp_path, pack, lines, says):
    """The error names the file and what to do; what unpacks without end is not unpacked to its end."""
    file = tmp_path / "snapshot.zst"
    file.write_bytes(pack(lines()))

    with pytest.raises(InputError, match=says) as caught:
        read_cluster([file])
    assert "snapshot.zst" in str(caught.value)
    with pytest.raises(InputError, match=says):
        read_snapshot(file.read_bytes(), "upload", max_bytes=128 << 20)


@pytest.mark.parametrize("name", ["missing", "folder/../../missing", "bad\0name"])
def test_a_path_that_leads_nowhere(tmp_path, name):
    with pytest.raises((InputError, ValueError)):
        read_cluster([tmp_path / name])


def test_a_small_file_takes_little_memory(tmp_path):
    """Though a large one may have 4 GiB."""
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}))
    most, _ = memory_of(lambda: read_cluster([file]))

    assert most < 16 << 20
