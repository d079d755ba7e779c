# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Filtering: the first plugin that turns a node down owns it; nominated pods count as if they were there."""

import asyncio

import numpy as np
import pytest

from berth.evaluation.filter_with_nominated import filter_with_nominated
from berth.evaluation.points.filtering import filter_one, run_filters
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed, unresolvable
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from tests.fakes import OnePod, Rejects, attempt_at

NAMES = ["n1", "n2", "n3"]
NODES = table([make_node(name) for name in NAMES])


async def filtered(*plugins, skip=(), candidates=(True, True, True)):
    attempt = attempt_at(NODES)
    attempt.state.skip_filter = frozenset(skip)
    diagnosis = Diagnosis(NODES.names)
    mask = await run_filters(plugins, attempt, np.array(candidates), diagnosis)
    statuses = {NAMES[row]: status for row, status in diagnosis.statuses().items()}
    return mask.tolist(), statuses, diagnosis


async def test_the_first_plugin_that_turns_a_node_down_owns_it():
    mask, statuses, diagnosis = await filtered(
        Rejects("A", {"n1": "a"}), Rejects("B", {"n1": "b", "n3": "b"})
    )

    assert [False, True, False] == mask
    assert {"n1": ("A", ("a",)), "n3": ("B", ("b",))} == {
        name: (status.plugin, status.reasons) for name, status in statuses.items()
    }
    assert {"A", "B"} == diagnosis.unschedulable_plugins


async def test_a_plugin_that_rejects_only_what_is_rejected_is_no_rejector():
    _, _, diagnosis = await filtered(Rejects("A", ["n1"]), Rejects("B", ["n1"]))

    assert {"A"} == diagnosis.unschedulable_plugins


async def test_plugins_after_the_last_node_is_gone_are_not_asked():
    last = Rejects("B")
    await filtered(Rejects("A", NAMES), last)

    assert [] == last.calls


async def test_skipped_plugins_are_not_asked():
    mask, _, _ = await filtered(Rejects("A", NAMES), skip={"A"})

    assert [True, True, True] == mask


async def test_nodes_that_are_no_candidates_are_neither_feasible_nor_recorded():
    mask, statuses, _ = await filtered(Rejects("A", ["n1"]), candidates=[False, True, False])

    assert [False, True, False] == mask
    assert {} == statuses


async def test_pending_is_remembered_as_such():
    pending = Status(Code.PENDING, ("later",))
    _, statuses, diagnosis = await filtered(Rejects("A", {"n1": pending}))

    assert pending.from_plugin("A") == statuses["n1"]
    assert {"A"} == diagnosis.pending_plugins


class Answers(Rejects):
    """Whatever it is given, as codes."""

    def __init__(self, codes):
        super().__init__("A")
        self.codes = codes

    def filter(self, state, pod, nodes):
        if isinstance(self.codes, Exception):
            raise self.codes
        return self.codes


@pytest.mark.parametrize(
    "plugin",
    [
        Answers(ValueError("boom")),
        Answers(np.array([0, 9, 0], dtype=np.uint8)),
        Answers(np.array([1, 1], dtype=np.uint8)),
        Rejects("A", {"n1": failed("boom")}),
        Rejects("A", {"n1": SUCCESS}),
        Rejects("A", {"n1": Status(Code.WAIT)}),
    ],
    ids=["raises", "unknown code", "wrong length", "error", "success", "wait"],
)
async def test_anything_but_a_rejection_fails_the_cycle(plugin):
    with pytest.raises(PluginError, match='running "A" filter plugin: '):
        await filtered(plugin)


class Remote(Rejects):
    """A sidecar."""

    in_process = False

    def filter(self, state, pod, nodes):
        self.answer = asyncio.get_running_loop().create_future()
        if not self.calls:
            self.answer.set_result(super().filter(state, pod, nodes))
        return self.answer


async def test_a_remote_plugin_is_asked_at_once_and_read_in_order():
    remote = Remote("R", ["n1", "n2"])
    mask, statuses, _ = await filtered(Rejects("A", ["n1"]), remote)

    assert [False, False, True] == mask
    assert "A" == statuses["n1"].plugin
    assert "R" == statuses["n2"].plugin


async def test_a_remote_answer_that_is_not_needed_is_not_awaited():
    remote = Remote("R", calls=["never answers"])
    await filtered(Rejects("A", NAMES), remote)

    assert remote.answer.cancelled()


async def test_a_call_that_is_given_up_has_ended_with_the_extension_point():
    """Its span is closed then: the attempt's record may be exported right after."""
    ended = []

    class Slow(Remote):
        def filter(self, state, pod, nodes):
            async def answering():
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)
                    ended.append(self.name)

            return asyncio.get_running_loop().create_task(answering())

    await filtered(Rejects("A", NAMES), Slow("R"))

    assert ["R"] == ended


class Sends(Remote):
    """A sidecar whose question leaves with the loop's next turn."""

    def __init__(self, happened):
        super().__init__("R", ["n1"], calls=["answers later"])
        self.happened = happened

    def filter(self, state, pod, nodes):
        asyncio.get_running_loop().call_soon(self.happened.append, "sent")
        return super().filter(state, pod, nodes)


async def test_this_process_works_while_another_does():
    """A question is sent before plugins of this process run, whatever the order; the first to reject owns."""
    happened = []
    remote = Sends(happened)
    asking = asyncio.create_task(filtered(remote, Rejects("A", ["n1", "n2"], calls=happened)))
    while len(happened) < 2:  # noqa: ASYNC110 - the loop turns until both have happened
        await asyncio.sleep(0)
    assert not asking.done()
    remote.answer.set_result(np.array([1, 0, 0], dtype=np.uint8))
    mask, statuses, _ = await asking

    assert ["sent", "A.filter"] == happened
    assert [False, False, True] == mask
    assert ["R", "A"] == [statuses["n1"].plugin, statuses["n2"].plugin]


async def nominated(plugin, placed=(), others=()):
    nodes = table([make_node("n1")], placed)
    attempt = attempt_at(nodes)
    plugin.pre_filter(attempt.state, attempt.pod, nodes)
    infos = [PodInfo(other) for other in others]
    status = await filter_with_nominated([plugin], [plugin], attempt, 0, infos)
    return status, attempt


async def test_nominated_pods_count_as_if_they_were_there():
    status, attempt = await nominated(OnePod(), others=[make_pod("other")])

    assert ("full",) == status.reasons
    assert 0 == attempt.state.read(OnePod).extra


async def test_each_nominated_pod_is_passed_to_the_extensions():
    plugin = OnePod(room=3)
    status, _ = await nominated(plugin, others=[make_pod("x"), make_pod("y")])

    assert status.ok
    assert ["add x on n1", "add y on n1"] == plugin.calls


@pytest.mark.parametrize("answer", [unresolvable("no"), ValueError("no")])
async def test_an_extension_that_fails_fails_the_cycle(answer):
    with pytest.raises(PluginError, match='running AddPod on PreFilter plugin "OnePod": no'):
        await nominated(OnePod(added=answer), others=[make_pod("x")])


async def test_extensions_of_a_skipping_plugin_are_not_asked():
    plugin, nodes = OnePod(), table([make_node("n1")])
    attempt = attempt_at(nodes)
    attempt.state.skip_filter = frozenset({"OnePod"})

    assert (await filter_with_nominated([plugin], [plugin], attempt, 0, [PodInfo(make_pod("x"))])).ok
    assert [] == plugin.calls


async def test_one_node_alone_gets_the_first_rejection():
    nodes = NODES.view(slice(1, 2))

    status = await filter_one([Rejects("A"), Rejects("B", {"n2": "b"})], attempt_at(nodes))

    assert ("B", ("b",)) == (status.plugin, status.reasons)
