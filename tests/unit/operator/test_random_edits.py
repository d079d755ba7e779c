"""A short form of `python -m tests.unit.operator.random_edits`."""

from tests.unit.operator.random_edits import play


async def test_random_edits(tmp_path):
    """After random edits by two users and three ended operators everything is as the specs say."""
    await play(tmp_path, rounds=3, edits=25, seed=7)
