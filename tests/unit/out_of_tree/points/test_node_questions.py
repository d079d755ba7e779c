"""Which form a question about nodes has, and what is read out of the answer to it."""

import numpy as np
import pytest

from berth.evaluation.caching.answer_columns import BOTH
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.points.node_questions import NodeQuestion
from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2
from tests.unit.out_of_tree.scripted import Scripted, cycle, hosted, passing

NODES = 8
NO_ROOM = common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text="no room")
POINTS = identity_pb2.EXTENSION_POINT_FILTER, identity_pb2.EXTENSION_POINT_SCORE
CODES, SCORES = [i % 2 for i in range(NODES)], [10 * i for i in range(NODES)]


def answered(request, rows):
    """Codes and scores of these rows, as entries of the answer."""
    return passing(
        request,
        verdicts=scheduling_pb2.Verdicts(each=bytes(CODES[row] for row in rows), reasons=[NO_ROOM]),
        scores=scheduling_pb2.Scores(
            uint8=bytes(SCORES[row] for row in rows), normalization=scheduling_pb2.NORMALIZATION_NONE
        ),
    )


def replying(*, lists, entries=None):
    """A plugin that reads lists or not, and answers with these entries, or with those that are due."""
    plugin = Scripted(*POINTS, listed_candidates=lists)

    async def reply(request, _context):
        asked = request.candidates
        listed = np.frombuffer(asked.indices, "<u4").tolist() if asked.HasField("indices") else range(NODES)
        return answered(request, listed if entries is None else entries)

    plugin.replies["FilterScore"] = reply
    return plugin


async def found(plugin, rows):
    """What the host reads out of the plugin's answer about these rows."""
    async with hosted(plugin, *(f"n{i}" for i in range(NODES))) as harness:
        await harness.up()
        caller, state, taken = harness.plugin.caller, cycle(), []
        question = NodeQuestion(caller, BOTH, np.array(rows, dtype=np.intp), NODES)
        answer = await question.ask(
            caller.head(state, harness.pod()), state, lambda *what: taken.append(what)
        )

    assert [(answer, rows)] == [(what, about.tolist()) for what, about in taken]
    return answer


@pytest.mark.parametrize(
    ("lists", "rows", "form"),
    [
        pytest.param(True, [5], "indices", id="one node"),
        pytest.param(True, [3, 7], "indices", id="a quarter of the nodes"),
        pytest.param(True, [], "indices", id="no node"),
        pytest.param(True, [1, 3, 7], "bitmap", id="more than a quarter"),
        pytest.param(True, list(range(NODES)), None, id="all nodes"),
        pytest.param(False, [5], "bitmap", id="a plugin that reads no lists"),
    ],
)
async def test_form(lists, rows, form):
    """Few nodes are listed where the plugin reads lists; the answer says the same of them in every form."""
    plugin = replying(lists=lists)
    answer = await found(plugin, rows)
    (request,) = plugin.requests("FilterScore")

    assert [CODES[row] for row in rows] == answer.codes.tolist()
    assert [SCORES[row] for row in rows] == answer.raw.tolist()
    assert form == (
        ("indices" if request.candidates.HasField("indices") else "bitmap")
        if request.HasField("candidates")
        else None
    )


@pytest.mark.parametrize("entries", [range(NODES), []], ids=["of all nodes", "none"])
async def test_as_many_entries_as_nodes_are_listed(entries):
    """Other vectors break the protocol: which nodes they are about could only be guessed."""
    with pytest.raises(ProtocolError, match=f"{len(entries)} verdicts for 1 nodes"):
        await found(replying(lists=True, entries=entries), [5])
