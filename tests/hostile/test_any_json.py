"""Whatever JSON kube-apiserver keeps byte for byte: what holds it is taken in, and so are all others.

Go's encoder writes opaque values (a claim's parameters, a driver's reports, managedFields) as they came: with
halves of surrogates, bytes that are no UTF-8, numbers of any size, any depth, keys given twice.
"""

import json
import math
import re

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.client import resources
from berth.client.legible import legible, unfolded
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.client.watching.whole_list import ListPieces
from berth.client.wire import bounded, decode_page, encode
from berth.demo.dataset.documents import parse_documents
from berth.objects.decode import decoder
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node_decoding import decode_node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.cluster_state.watched_objects import decode_object
from tests.hostile.work import growth
from tests.suite import examples

LETTERS = [
    *(rb"\ud800", rb"\udfff", rb"\uD83D\uDE00", rb"\ud800\ud800", rb"\\ud800", rb"\u0000", rb"\/", rb"\""),
    *(
        b"\xff",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        "\u2028".encode(),
        b"\x7f",
        b"a",
        b"]",
        b"},",
    ),
    b'\\"},{\\"metadata\\":{',
]
TEXTS = st.lists(st.sampled_from(LETTERS), max_size=4).map(lambda letters: b'"%s"' % b"".join(letters))
NUMBERS = st.sampled_from(
    [
        b"0",
        b"-0",
        b"-0.0",
        b"1e400",
        b"-1E+400",
        b"1e99999999999",
        b"1e-99999999999",
        b"1.5",
        b"9" * 30,
        b"9" * 5_000,
        b"-" + b"9" * 5_000,
        b"0." + b"9" * 500,
        b"1" + b"0" * 400 + b".0",
        b"18446744073709551616",
        b"1e022",
    ]
)
LITERALS = st.sampled_from([b"true", b"false", b"null", b"{}", b"[]"])
VALUES = st.recursive(
    TEXTS | NUMBERS | LITERALS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: b"[%s]" % b",".join(values))
        | st.lists(st.tuples(TEXTS, inner), max_size=3).map(
            lambda pairs: b"{%s}" % b",".join(b"%s:%s" % pair for pair in pairs)
        )
    ),
    max_leaves=8,
)


@st.composite
def opaque(draw):
    """A value within lists or maps, of which there may be thousands."""
    value, depth = draw(VALUES), draw(st.sampled_from([0, 1, 62, 70, 1_500, 5_000]))
    before, after = draw(st.sampled_from([(b"[", b"]"), (b'{"a":', b"}"), (rb'[{"\ud800":', b"}]")]))
    return before * depth + value + after * depth


def claim(name, version, value):
    """A claim whose parameters, reports and managed fields are that value."""
    return _thing(
        name,
        version,
        value,
        b'"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":%s}}]}}' % value,
        b'"status":{"devices":[{"driver":"d","data":%s}]}' % value,
    )


def pod(name, version, value):
    """A pod with such managed fields."""
    return _thing(name, version, value, b'"spec":{"containers":[{"name":"c"}]}')


def node(name, version, value):
    """A node with such managed fields."""
    return _thing(name, version, value, b'"spec":{}')


def _thing(name, version, value, *fields):
    head = f'"name":"{name}","namespace":"ns","uid":"{name}","resourceVersion":"{version}"'.encode()
    managed = b'"managedFields":[{"fieldsV1":%s}]' % value
    return b"{%s}" % b",".join((b'"metadata":{%s,%s}' % (head, managed), *fields))


class Seen:
    """Notes what a mirror reports."""

    def __init__(self):
        self.there = {}

    def on_add(self, obj):
        self.there[obj.name] = obj

    def on_update(self, old, new):
        assert old is self.there.pop(old.name)
        self.on_add(new)

    def on_delete(self, obj):
        del self.there[obj.name]


def every_decoder_reads(data):
    """Whether plugins can read it, for whom there are only JSON's own rules about numbers."""
    json.loads(data, parse_int=str)
    return True


KINDS = [
    pytest.param(resources.RESOURCE_CLAIMS, decoder(ResourceClaim), claim, id="claims"),
    pytest.param(resources.PODS, RawObjects().decoding(decode_pod), pod, id="pods"),
    pytest.param(resources.NODES, RawObjects().decoding(decode_node), node, id="nodes"),
    pytest.param(resources.RESOURCE_CLAIMS, decode_object, claim, id="claims for plugins"),
]


@pytest.mark.parametrize(("resource", "decode", "written"), KINDS)
@given(value=opaque())
@example(rb'"\ud800"')
@settings(max_examples=examples(60), deadline=None)
def test_what_holds_it_is_taken_in_and_its_end_is_seen(resource, decode, written, value):
    seen = Seen()
    mirror = Reflector(None, WatchSource(resource), decode, seen)
    items = [written("a", 1, b"{}"), written("hostile", 2, value), written("b", 3, b"{}")]
    page = b'{"metadata":{"resourceVersion":"3"},"items":[%s]}' % b",".join(items)

    for raw in decode_page(page).items:
        mirror._take_listed(raw, {})
    assert {"a", "hostile", "b"} == seen.there.keys()
    for kind, version in ((b"MODIFIED", 4), (b"DELETED", 5)):
        changed = written("hostile", version, value)
        mirror._take_line(b'{"type":"%s","object":%s}' % (kind, changed))
    assert {"a", "b"} == seen.there.keys()
    assert (0, "5") == (mirror.aside.total, mirror.resource_version)


@given(value=opaque(), size=st.sampled_from([1_000, 100_000]))
@settings(max_examples=examples(60), deadline=None)
def test_a_list_taken_apart_while_it_arrives_has_every_item(value, size):
    items = [claim(f"c{i}", i, value if i % 2 else b"{}") for i in range(6)]
    data = b'{"items":[%s],"metadata":{"resourceVersion":"9"}}' % b",".join(items)
    pieces, found = ListPieces(), []
    for at in range(0, len(data), size):
        found += pieces.take(data[at : at + size])
    last = pieces.last()

    assert items == [bytes(each) for each in (*found, *last.items)]
    assert "9" == last.metadata.resource_version


@given(value=opaque())
@settings(max_examples=examples(100), deadline=None)
def test_what_plugins_are_sent_every_decoder_reads(value):
    kept = RawObjects()
    bounded(kept.decoding(decode_pod))(pod("p", 1, value))

    assert every_decoder_reads(kept.get("p"))
    assert every_decoder_reads(bounded(decode_object)(claim("c", 1, value)).data)


def as_go_reads_it(data):
    """The value with U+FFFD for what is no Unicode; numbers that are no float as they are written."""
    text = re.sub(
        r"\\\\|(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..",
        lambda found: found[0] if found[1] or found[0] == r"\\" else r"\ufffd",
        data.decode(errors="replace"),
    )
    return json.loads(text, parse_int=_number, parse_float=_number)


def _number(text):
    value = float(text)
    return value if math.isfinite(value) else text


@given(value=VALUES)
@example(rb'{"\ud800":1,"\udfff":2}')
@settings(max_examples=examples(200), deadline=None)
def test_parameters_are_written_as_go_reads_them(value):
    """They go into the claim's allocation, where its driver reads them."""
    read = bounded(decoder(ResourceClaim))(claim("c", 1, value))
    parameters = read.spec.devices.config[0].opaque.parameters

    assert without_nulls(as_go_reads_it(value)) == without_nulls(as_go_reads_it(encode(parameters)))


def without_nulls(value):
    """Nulls in maps may have gone: the patch that writes them takes them out as well."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@given(value=VALUES)
@settings(max_examples=examples(200), deadline=None)
def test_what_every_decoder_reads_stays_as_it_is(value):
    try:
        msgspec.json.decode(value)
    except (ValueError, RecursionError):
        msgspec.json.decode(legible(value))
    else:
        assert value == legible(value)


def test_a_text_that_was_found_out_brings_no_field_into_what_is_written():
    """A plugin sees the texts that stand for deep values: what one holds has to be one value."""
    mark = legible(b"[" * 70 + b"]" * 70).strip(b'[]"')[:32].decode()
    forged = [f"{mark}{text}" for text in ("MSwieCI6Mg==", "MX0seyJ4Ijox", "=", "AA==", "")]

    assert [*forged, 1] == json.loads(encode([*forged, 1]))
    assert b'{"a":1e400}' == unfolded(legible(b'{"a":1e400}'))


@pytest.mark.parametrize(
    "shape", [b'["a",%s]', rb'["\ud800",%s]', b"[1e400,%s]", b'["\xff",%s]', b"[111,%s]"], ids=repr
)
def test_making_it_legible_takes_work_linear_in_the_length(shape):
    begin, end = shape.split(b"%s")

    def making(n):
        return lambda: legible((begin + b"1" + end + b",") * n)

    assert growth(making, 500) < 1.1
    assert growth(lambda n: lambda: legible(begin * n + b"1" + end * n), 500) < 1.1


def test_a_file_that_has_it_is_read():
    ((_, document),) = parse_documents("file", rb'{"a": {"\ud800": "\udfff\\ud800"}}', is_json=True)

    assert {"a": {"\ufffd": "\ufffd\\ud800"}} == document
