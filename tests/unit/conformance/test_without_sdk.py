"""Plugins on each language's usual gRPC server, written from proto/ and docs/protocol.md alone."""

import asyncio

import msgspec
import pytest

from berth.conformance import CHECKS, CheckOutcome, verify
from tests.unit.conformance.broken import failed
from tests.unit.conformance.running import process
from tests.without_sdk import PROGRAMS, NotHereError, built

FEWEST = 100
"""Checks that pass on a plugin with Filter and Score, and events."""


@pytest.mark.parametrize("folder", PROGRAMS, ids=lambda folder: folder.name)
async def test_without_sdk(folder):
    """It is refused nowhere, passes every check of what it announces, and ends when asked to."""
    try:
        command, environment = await asyncio.to_thread(built, folder)
    except NotHereError as missing:
        pytest.skip(f"{folder.name}: {missing} on this machine")

    async with process(*command, **environment) as options:
        _, results = await verify(
            msgspec.structs.replace(options, arguments={"label": "team"}, trace_file=None), CHECKS.values()
        )

    assert {} == failed({each.check.id: each for each in results})
    assert FEWEST < sum(each.outcome is CheckOutcome.PASS for each in results)
