"""Lines come out as they went in, however the wire cuts them up."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.client.watch import split_lines


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
