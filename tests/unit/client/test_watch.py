"""Lines come out as they went in, however the wire cuts them up; a wire that is dead is given up."""

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.client.resources import PODS
from berth.client.watching import watch
from berth.client.watching.watch import WatchSource, split_lines, watch_lines
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import raw_server, read_request, transport_to


class Pieces:
    """A body stream made of given pieces."""

    def __init__(self, pieces):
        self.left = list(pieces)

    async def read(self):
        return self.left.pop(0) if self.left else b""


@settings(deadline=None)
@given(lines=st.lists(st.text(max_size=20).map(lambda text: text.encode()), max_size=8), cuts=st.data())
async def test_split_lines(lines, cuts):
    """Splitting is the same for every way to cut the stream; blank lines are left out."""
    lines = [line.replace(b"\n", b"").replace(b"\r", b"") for line in lines]
    whole = b"\n".join(lines)
    places = sorted(cuts.draw(st.lists(st.integers(0, len(whole)), max_size=10)))
    ends = [0, *places, len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(ends)]
    found = [line async for batch in split_lines(Pieces(filter(None, pieces))) for line in batch]

    assert found == [line for line in lines if line.strip()]


async def test_a_watch_of_which_nothing_is_heard(monkeypatch):
    """It ends, and not as an error: where the server had nothing to say, watching anew costs little."""
    monkeypatch.setattr(watch, "SILENT_SECONDS", 0.3)

    async def one_line(reader, writer):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
        await reader.read()

    async with (
        raw_server(one_line) as server,
        transport_to(server.url) as transport,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        lines = [
            line async for lines in watch_lines(transport, WatchSource(PODS), "1", 600) for line in lines
        ]

    assert [b"{}"] == lines
