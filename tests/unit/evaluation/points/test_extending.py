# ruff: noqa: ARG002 - a fake takes the arguments of what it stands in for, whether it looks or not

"""Extenders' place in a cycle."""

import numpy as np
import pytest

from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.find_nodes import Feasible, NodeSearch, Rotation
from berth.evaluation.points.extending import run_extender_preemption
from berth.framework.extender import ExtenderVerdicts, Victims
from berth.framework.status import Code, PluginError, Status
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import FixedNominator
from tests.failures.reporting import reports
from tests.fakes import Binds, Rejects, Scores, attempt_at, empty, framework, given, make_core, new_record

NODES = table([make_node("n0"), make_node("n1"), make_node("n2")])


class Extends:
    """An extender that does what a test says; an exception stands for a call that fails."""

    def __init__(self, name="ext", *, weight=1, ignorable=False, about=None, **answers):
        self.name, self.weight, self.ignorable, self.about = name, weight, ignorable, about
        self.answers = answers
        self.asked = []
        self.filters, self.prioritizes = "filter" in answers, "prioritize" in answers
        self.preempts, self.binds = "preempt" in answers, "bind" in answers

    def interested(self, pod):
        return self.about is None or pod.name == self.about

    async def filter(self, attempt, nodes):
        self.asked.append([node.name for node in nodes])
        verdicts = given(self.answers["filter"])
        return ExtenderVerdicts(verdicts) if isinstance(verdicts, list) else verdicts

    async def prioritize(self, attempt, nodes):
        self.asked.append([node.name for node in nodes])
        return given(self.answers["prioritize"])

    async def preempt(self, attempt, victims):
        self.asked.append(dict(victims))
        return given(self.answers["preempt"])

    async def bind(self, state, pod, node_name):
        self.asked.append((pod.name, node_name))
        given(self.answers["bind"])


def profile(*extenders, **points):
    runs = framework(**points)
    runs.extenders = extenders
    return runs


def search(nominator=None, percentage=0):
    return NodeSearch(nominator or FixedNominator(), Rotation(), percentage)


async def found(runs, pod=None, nodes=NODES):
    return await search().find(runs, attempt_at(nodes, pod), empty(runs))


def feasible(answer):
    assert isinstance(answer, Feasible)
    return [NODES.names[row] for row in np.flatnonzero(answer.mask)]


async def test_filters_see_what_plugins_and_other_extenders_left():
    """One after another, on a list that only shrinks."""
    first, second = Extends(filter=["n2", "n1"]), Extends(filter=["n2"])
    answer = await found(profile(first, second, filter=[Rejects("A", ["n0"])]))

    assert ["n2"] == feasible(answer)
    assert [["n1", "n2"]] == first.asked
    assert [["n1", "n2"]] == second.asked
    assert 1 == answer.count
    assert {"A", "Extender"} == answer.diagnosis_builder.diagnosis().unschedulable_plugins


async def test_no_extender_is_asked_about_no_nodes():
    """Once nothing is left, the other extenders are not called."""
    first, second = Extends(filter=[]), Extends(filter=["n2"])
    status = await found(profile(first, second))

    assert [] == second.asked
    assert "0/3 nodes are available:" == status.message
    assert {"Extender"} == status.error.diagnosis.unschedulable_plugins


async def test_reasons():
    """Failed nodes get the extender's texts; what is unresolvable counts more; no plugin signs."""
    verdicts = ExtenderVerdicts((), {"n0": "busy", "n1": "busy", "gone": "x"}, {"n1": "broken"})
    status = await found(profile(Extends(filter=verdicts), filter=[Rejects("A", {"n2": "full"})]))

    assert "0/3 nodes are available: 1 broken, 1 busy, 1 full." == status.message
    diagnosis = status.error.diagnosis
    assert Status(Code.UNSCHEDULABLE, ("busy",)) == diagnosis.node_status(0)
    assert Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("broken",)) == diagnosis.node_status(1)
    assert {"A", "Extender"} == diagnosis.unschedulable_plugins


async def test_an_extender_that_leaves_all_is_not_to_blame():
    """Only fewer nodes make it a rejector."""
    answer = await found(profile(Extends(filter=["n0", "n1", "n2"])))

    assert set() == answer.diagnosis_builder.diagnosis().unschedulable_plugins


async def test_failure():
    """A failing filter fails the cycle with its text."""
    status = await found(profile(Extends(filter=OSError("cut"))))

    assert (Code.ERROR, "cut") == (status.code, status.message)


@reports(
    "extender-ignored",
    log="`extender passed over`, with its verb and the cause",
    answer="`berth explain pod`: at the attempt",
)
async def test_ignorable_failure(caplog):
    """An ignorable extender that fails leaves everything as it was."""
    attempt, runs = attempt_at(NODES, None), profile(Extends(filter=OSError("cut"), ignorable=True))
    answer = await search().find(runs, attempt, empty(runs))

    assert ["n0", "n1", "n2"] == feasible(answer)
    assert ("filter: extender ext: cut",) == attempt.record.ignored
    assert "extender passed over extender=ext verb=filter err=cut" in caplog.text


async def test_not_interested():
    """An extender is asked only about its pods."""
    extender = Extends(filter=[], prioritize={}, bind=None, about="other")
    answer = await found(profile(extender))

    assert ["n0", "n1", "n2"] == feasible(answer)
    assert [] == extender.asked


async def test_sampling_comes_first():
    """Extenders get no more nodes than the search has to find."""
    nodes = table([make_node(f"n{i}") for i in range(200)])
    extender = Extends(filter=ExtenderVerdicts([]))
    runs = profile(extender)
    await search(percentage=50).find(runs, attempt_at(nodes), empty(runs))

    assert [100] == [len(names) for names in extender.asked]


@pytest.mark.parametrize(
    ("left", "chosen"), [(["n1"], ["n1"]), ([], []), (OSError("cut"), [])], ids=["stays", "leaves", "fails"]
)
async def test_nominated_node(left, chosen):
    """The node that the pod is nominated to has to pass extenders too; otherwise all nodes are looked at."""
    extender = Extends(filter=left)
    answer = await found(profile(extender), make_pod(nominated_node_name="n1"))

    assert ["n1"] == extender.asked[0]
    assert chosen == (feasible(answer) if isinstance(answer, Feasible) else [])
    assert (1 if chosen else 2) == len(extender.asked)


async def decided(runs, pod=None):
    attempt = attempt_at(NODES, pod)
    decision = await SchedulePod(search(), given(RANDOM)).decide(runs, attempt)
    return decision, attempt.record.score


class First:
    def randrange(self, n):
        return 0


RANDOM = First()


async def test_scores_are_added():
    """Ten times the extender's score times its weight, on top of the plugins' scores."""
    extender = Extends(weight=3, prioritize={"n1": 2, "n0": 1, "n9": 9})
    runs = profile(extender, score=[(Scores("A", {"n0": 10, "n2": 50}), 2)])
    decision, score = await decided(runs)

    assert ("n2", 100) == (decision.node_name, score)
    decision, score = await decided(profile(extender, score=[(Scores("A", {"n0": 10, "n2": 29}), 2)]))
    assert ("n1", 60) == (decision.node_name, score)


async def test_scores_without_score_plugins():
    """An extender alone decides, too."""
    decision, score = await decided(profile(Extends(prioritize={"n1": 5}), Extends(prioritize={"n1": 1})))

    assert ("n1", 60) == (decision.node_name, score)


async def test_scores_that_fail():
    """Failing to prioritise fails nothing, ignorable or not."""
    runs = profile(Extends(prioritize=OSError("cut")), Extends(prioritize={"n2": 1}))
    decision, score = await decided(runs)

    assert ("n2", 10) == (decision.node_name, score)


async def test_one_node_needs_no_scores():
    """The only node that fits is taken without asking."""
    extender = Extends(prioritize={"n2": 1})
    decision, _ = await decided(profile(extender, filter=[Rejects("A", ["n0", "n1"])]))

    assert ("n2", []) == (decision.node_name, extender.asked)


async def bound(runs):
    return await runs.run_bind(attempt_at(NODES).state, make_pod("p"), "n1", new_record())


async def test_binder_replaces_bind_plugins():
    """The first interested binder binds, and none after it."""
    plugin, second = Binds(), Extends(bind=None)
    uninterested, first = Extends(bind=None, about="other"), Extends(bind=None)
    status = await bound(profile(uninterested, first, second, bind=[plugin]))

    assert status.ok
    assert [("p", "n1")] == first.asked
    assert [[], [], []] == [uninterested.asked, second.asked, plugin.calls]


async def test_binder_that_fails():
    """Its error is the binding's; an ignorable one leaves the pod to the next."""
    plugin = Binds()
    status = await bound(profile(Extends(bind=OSError("cut")), bind=[plugin]))
    assert (Code.ERROR, "cut", []) == (status.code, status.message, plugin.calls)

    status = await bound(profile(Extends(bind=OSError("cut"), ignorable=True), bind=[plugin]))
    assert status.ok
    assert ["Binds.bind p to n1"] == plugin.calls


async def test_a_pod_is_bound_by_an_extender():
    """Through a whole cycle."""
    extender = Extends(filter=["n1"], bind=None)
    cluster = make_core(profile(extender, bind=[Binds()]), make_node("n0"), make_node("n1"))
    cluster.add_pod(make_pod("p0", scheduler_name="default-scheduler"))
    await cluster.turn()

    assert ("p0", "n1") == extender.asked[-1]
    assert ["scheduled"] == [record.result for record in cluster.records]


V0, V1 = Victims((make_pod("v0"),)), Victims((make_pod("v1"),), 1)


async def preempted(*extenders, victims=None):
    return await run_extender_preemption(extenders, attempt_at(NODES), victims or {"n0": V0, "n1": V1})


async def test_preemption():
    """What one leaves is what the next is asked about."""
    first, second = Extends(preempt={"n1": V1}), Extends(preempt={"n1": V0})

    assert {"n1": V0} == await preempted(first, second)
    assert [{"n0": V0, "n1": V1}] == first.asked
    assert [{"n1": V1}] == second.asked


async def test_preemption_ends_with_nothing():
    """Once no candidate is left, the others are not asked."""
    second = Extends(preempt={"n1": V1})

    assert {} == await preempted(Extends(preempt={}), second)
    assert [] == second.asked


async def test_preemption_failures():
    """Errors and nodes without victims are fatal unless the extender is ignorable."""
    none = Extends(preempt={"n0": Victims(()), "n1": V1})
    with pytest.raises(PluginError, match=r'^expected at least one victim pod on node "n0"$'):
        await preempted(none)
    none.ignorable = True
    assert {"n1": V1} == await preempted(none)

    broken = Extends(preempt=OSError("cut"))
    with pytest.raises(PluginError, match=r"^cut$"):
        await preempted(broken)
    broken.ignorable = True
    assert {"n0": V0, "n1": V1} == await preempted(broken)
