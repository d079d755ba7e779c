"""Who floods a plugin of the Python SDK with HTTP/2 frames keeps no other client from its answers.

What it may do at most: some CPU for each frame, and memory for 1,000 streams that are opened and reset.
grpcio ends a connection that pings without need.
"""

import pytest

from berth_sdk.serving import MAX_STREAMS
from tests.hostile.http2_floods import FLOODS, flooded, plugin_process

FRAMES = 3_000
MAX_MIB = 60


@pytest.mark.parametrize("name", FLOODS)
async def test_others_are_answered(name, tmp_path):
    """All the while, and afterwards; the process lives, and its memory has a bound."""
    async with plugin_process(tmp_path / "p.sock") as process:
        cost = await flooded(name, tmp_path / "p.sock", process, FRAMES)

        assert process.returncode is None
        assert cost.grown < MAX_MIB
        assert cost.ended or cost.sent == FRAMES


async def test_pings_without_need_end_the_connection(tmp_path):
    async with plugin_process(tmp_path / "p.sock") as process:
        cost = await flooded("pings", tmp_path / "p.sock", process, FRAMES, patience=60.0)

        assert cost.ended


async def test_a_connection_has_so_many_streams_at_most(tmp_path):
    """Else what is opened and reset takes 44 MiB, and the server gives calls of others up now and then."""
    async with plugin_process(tmp_path / "p.sock") as process:
        cost = await flooded("rapid reset", tmp_path / "p.sock", process, 10 * MAX_STREAMS)

        assert cost.grown < MAX_MIB / 2
        assert cost.cancelled == 0
