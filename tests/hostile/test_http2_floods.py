"""Who floods a plugin of the Python SDK with HTTP/2 frames keeps no other client from its answers.

What it may do at most: some CPU for each frame, memory for streams that are opened and reset, and now and
then a call of another client that grpcio's server gives up with CANCELLED while streams are reset: one
attempt fails, counted as the plugin's. grpcio ends a connection that pings without need.
"""

import pytest

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
