"""Whatever a plugin answers, the scheduler says that the plugin failed, or takes it within its bounds."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.framework.status import Code
from berth.out_of_tree.errors import SidecarError
from berth_plugin_proto import common_pb2, scheduling_pb2
from tests.suite import examples
from tests.unit.out_of_tree.scripted import Scripted, cycle, hosted, passing

NODES = 3
MAX_SCORE = 100
reasons = st.builds(
    common_pb2.Reason, code=st.integers(0, 12), text=st.text(st.characters(codec="utf-8"), max_size=30)
)
verdicts = st.builds(
    scheduling_pb2.Verdicts,
    each=st.binary(max_size=6) | st.just(b"\0" * NODES),
    reasons=st.lists(reasons, max_size=4),
)
numbers = st.integers(-(2**63), 2**63 - 1)
scores = st.builds(
    scheduling_pb2.Scores,
    normalization=st.integers(0, 5),
    uint8=st.binary(max_size=5),
) | st.builds(scheduling_pb2.Scores, normalization=st.integers(0, 5))


@given(each=verdicts, points=scores)
@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_verdicts_and_scores(each, points):
    """A code for each node, a reason for each code, a score within the scale; or a SidecarError."""
    plugin = Scripted()

    async def reply(request, _context):
        return passing(request, verdicts=each, scores=points)

    plugin.replies["FilterScore"] = reply
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        try:
            codes = await harness.filter(pod, state)
            raw = await harness.score(state, pod)
        except SidecarError:
            return

    assert (NODES,) == codes.shape
    assert all(
        harness.plugin.filter_status(state, int(code)).code is not Code.SUCCESS for code in codes if code
    )
    assert (NODES,) == raw.shape
    assert np.issubdtype(raw.dtype, np.integer)


@pytest.mark.parametrize("length", [10_000, 3_000_000])
async def test_a_reason_is_cut(length):
    plugin = Scripted()
    long = common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text="x" * length)

    async def reply(request, _context):
        return passing(request, verdicts=scheduling_pb2.Verdicts(each=b"\1" * NODES, reasons=[long]))

    plugin.replies["FilterScore"] = reply
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        try:
            await harness.filter(pod, state)
        except SidecarError as error:
            said = str(error)
        else:
            said = harness.plugin.filter_status(state, 1).message

    assert len(said) <= 4_096
