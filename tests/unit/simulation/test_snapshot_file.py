"""A snapshot is read back as it was written, or refused."""

import gzip
import io
import json

import msgspec
import pytest
import zstandard
from click.testing import CliRunner

from berth.commands.snapshot import snapshot
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.reading import packed_lines, snapshot_file
from berth.simulation.reading.inputs import read_cluster
from tests.unit.simulation.kit import node, pod, written

HEADER = snapshot_file.SnapshotHeader(snapshot_file.API_VERSION, snapshot_file.KIND)


def taken(tmp_path, *documents):
    path = tmp_path / "cluster.json.zst"
    source = written(tmp_path / "source.json", *documents)
    result = CliRunner().invoke(snapshot, [str(source), "-o", str(path)])
    assert 0 == result.exit_code, result.output
    return path


def test_what_is_written_is_read_back(tmp_path):
    """The cluster of a snapshot is the cluster that it was taken of."""
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
            ]
        }
    }
    path = taken(
        tmp_path, node("n0", taints=[{"key": "k", "effect": "NoSchedule"}]), pod("p0", affinity=affinity)
    )

    again, first = read_cluster([path]), read_cluster([tmp_path / "source.json"])

    assert first.of(Node) == again.of(Node)
    assert first.of(Pod) == again.of(Pod)


def test_what_decisions_do_not_read_stays_out(tmp_path):
    """Environment variables and commands are not in a snapshot."""
    secret = pod("p0")
    secret["spec"]["containers"][0] |= {"env": [{"name": "A", "value": "hunter2"}], "command": ["hunter2"]}

    packed = taken(tmp_path, secret).read_bytes()

    assert b"hunter2" not in zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read()


def cut(lines):
    return lines[:-1]


def one_missing(lines):
    return [*lines[:1], *lines[2:]]


def too_long(lines):
    return [lines[0], b"x" * (packed_lines.LONGEST_LINE_BYTES + 1)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(cut, "cut off", id="cut off"),
        pytest.param(one_missing, "1 objects where the last line says 2", id="a line is missing"),
        pytest.param(too_long, "more than", id="a line without an end"),
        pytest.param(lambda lines: [lines[0], b"{]", lines[-1]], "no JSON", id="damaged line"),
    ],
)
def test_damage_is_found(tmp_path, change, said):
    """A snapshot that is not whole is refused, with the line where that shows."""
    out = io.BytesIO()
    snapshot_file.write(out, [msgspec.json.encode(node("a")), msgspec.json.encode(node("b"))], HEADER)
    whole = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(out.getvalue())).read()
    path = tmp_path / "c.json"
    path.write_bytes(b"\n".join(change(whole.splitlines())) + b"\n")

    with pytest.raises(InputError, match=said) as caught:
        read_cluster([path])

    assert str(caught.value).startswith(f"{path}:")


def test_damaged_compression_is_found(tmp_path):
    """Compressed data that ends too early is no traceback."""
    path = taken(tmp_path, *(node(f"n{number}") for number in range(200)))
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(InputError, match=r"cut off|is whole"):
        read_cluster([path])


@pytest.mark.parametrize("is_snapshot", [True, False])
def test_damaged_gzip_is_found(tmp_path, is_snapshot):
    """A bit that is not as it was written is named with its file, in a snapshot and in a Kubernetes file."""
    documents = [node(f"n{number}") for number in range(200)]
    if is_snapshot:
        text = zstandard.ZstdDecompressor().stream_reader(taken(tmp_path, *documents).read_bytes()).read()
    else:
        text = "".join(json.dumps(each) for each in documents).encode()
    packed = bytearray(gzip.compress(text))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "damaged.json.gz"
    path.write_bytes(packed)

    with pytest.raises(InputError, match=r"damaged\.json\.gz"):
        read_cluster([path])
