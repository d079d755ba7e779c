"""Objects larger than a message to a plugin may be: no plugin is to blame, and no other pod is concerned."""

import pytest

from berth.out_of_tree.connections.breaker import FAILURES_IN_A_ROW, Circuit
from berth.out_of_tree.errors import RequestTooLargeError
from berth.out_of_tree.limits import MESSAGE_BYTES
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import Scripted, hosted, until
from tests.unit.out_of_tree.transport.test_ttrpc import lets_pass, scripted

LARGE = {"text": "x" * MESSAGE_BYTES}


def over_grpc():
    """A plugin that lets every node pass."""
    plugin = Scripted()
    plugin.replies["FilterScore"] = lets_pass
    return plugin


@pytest.mark.parametrize("make", [over_grpc, scripted])
async def test_requests_that_are_not_sent_leave_the_circuit_closed(make):
    """The pod is told why; a small pod is asked about right after it."""
    async with hosted(make()) as harness:
        await harness.up()
        for i in range(2 * FAILURES_IN_A_ROW):
            with pytest.raises(RequestTooLargeError, match=r"was not asked: with the pod it takes \d+ bytes"):
                await harness.filter(harness.pod(f"large-{i}", annotations=LARGE))

        assert Circuit.CLOSED is harness.connection.breaker.circuit
        assert [0, 0, 0] == (await harness.filter()).tolist()


@reports("object-too-large", log="`object left out of plugins' state`, with its bytes")
async def test_a_placed_pod_that_fits_into_no_message_ends_no_stream(caplog):
    """The plugin has the state without it, and the log says which kind of object was left out."""
    async with hosted(over_grpc()) as harness:
        harness.cache.add_pod(harness.pod("large", annotations=LARGE).placed_on("n0"))
        harness.cache.add_pod(harness.pod("small").placed_on("n0"))
        harness.step()
        await harness.up()
        await until(lambda: "object left out of plugins' state change=pod_upsert" in caplog.text)

        assert [0, 0, 0] == (await harness.filter()).tolist()
        assert harness.connection.starts == 1
