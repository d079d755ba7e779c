"""From a pod to feasible nodes, or to why there are none."""

import pytest

from berth.evaluation.find_nodes import Feasible, NodeSearch, Rotation, nodes_to_find
from berth.framework.attempts.diagnosis import FitError
from berth.framework.status import SKIP, Code, failed, unresolvable, unschedulable
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import FixedNominator
from tests.failures.reporting import reports
from tests.fakes import OnePod, PreFilters, Rejects, Scores, attempt_at, empty, framework


def cluster(n, placed=()):
    return table([make_node(f"n{i}") for i in range(1, n + 1)], placed)


async def find(profile, nodes, pod=None, *, nominator=None, rotation=None, percentage=0):
    search = NodeSearch(nominator or FixedNominator(), rotation or Rotation(), percentage)
    # Without anything to score with, one node would be enough.
    profile.plugins.score = profile.plugins.score or [(Scores("S"), 1)]
    return await search.find(profile, attempt_at(nodes, pod), empty(profile))


def names(found, nodes):
    assert isinstance(found, Feasible), found.message
    return [name for name, fits in zip(nodes.names, found.mask, strict=True) if fits]


def diagnosis(status):
    assert isinstance(status.error, FitError), status
    return status.error.diagnosis


async def test_no_nodes():
    """Not a fit error: PostFilter does not run, no plugin is blamed."""
    status = await find(framework(), cluster(0))

    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE is status.code
    assert "no nodes available to schedule pods" == status.message
    assert not isinstance(status.error, FitError)


async def test_the_last_rejecting_pre_filter_speaks_for_every_node():
    profile = framework(
        pre_filter=[PreFilters("A", unschedulable("a")), PreFilters("B", unschedulable("b"))],
        filter=[Rejects("F", ["n1"])],
    )
    status = await find(profile, cluster(2))

    assert "0/2 nodes are available: b." == status.message
    assert {"B"} == diagnosis(status).unschedulable_plugins
    assert [True, True] == diagnosis(status).rows_with(Code.UNSCHEDULABLE).tolist()
    assert [] == profile.plugins.filter[0].calls


async def test_plugins_that_leave_no_node_together():
    profile = framework(pre_filter=[PreFilters("A", node_names=["n1"]), PreFilters("B", node_names=["n2"])])
    status = await find(profile, cluster(2))

    assert "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously." == status.message
    assert {"A", "B"} == diagnosis(status).unschedulable_plugins


async def test_a_narrowed_choice():
    """Other nodes count as unresolvable, and the plugin that narrowed is a rejector."""
    profile = framework(pre_filter=[PreFilters("A", node_names=["n1"])], filter=[Rejects("F", {"n1": "x"})])
    status = await find(profile, cluster(3))

    assert "0/3 nodes are available: 1 x, 2 node(s) didn't satisfy plugin(s) [A]." == status.message
    assert {"A", "F"} == diagnosis(status).unschedulable_plugins
    assert [True, False, False] == diagnosis(status).rows_with(Code.UNSCHEDULABLE).tolist()


async def test_a_choice_narrowed_to_nodes_that_do_not_exist():
    status = await find(framework(pre_filter=[PreFilters("A", node_names=["gone"])]), cluster(1))

    assert "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [A]." == status.message


async def test_a_pre_filter_error_ends_the_cycle():
    status = await find(framework(pre_filter=[PreFilters("A", failed("boom"))]), cluster(1))

    assert (Code.ERROR, 'running PreFilter plugin "A": boom') == (status.code, status.message)


async def test_a_filter_error_ends_the_cycle():
    status = await find(framework(filter=[Rejects("A", {"n1": failed("boom")})]), cluster(1))

    assert (Code.ERROR, 'running "A" filter plugin: boom') == (status.code, status.message)


async def test_the_nominated_node_is_looked_at_alone_and_taken():
    """Even where the node set of PreFilter leaves it out; the rotation stays."""
    nodes, rotation = cluster(3), Rotation(1)
    profile = framework(
        pre_filter=[PreFilters("A", node_names=["n1"])], filter=[Rejects("F")], score=[Scores("S")]
    )
    found = await find(profile, nodes, make_pod(nominated_node_name="n2"), rotation=rotation)

    assert ["n2"] == names(found, nodes)
    assert (1, 1) == (found.count, rotation.start)
    assert ["F.filter"] == profile.plugins.filter[0].calls


async def test_a_nomination_that_does_not_hold_is_looked_at_again_with_the_others():
    nodes = cluster(2)
    profile = framework(filter=[Rejects("F", ["n2"])])
    found = await find(profile, nodes, make_pod(nominated_node_name="n2"))

    assert ["n1"] == names(found, nodes)
    assert ["n2"] == [nodes.names[row] for row in found.diagnosis_builder.diagnosis().statuses()]


async def test_a_nominated_node_outside_the_narrowed_choice_keeps_its_verdict():
    profile = framework(
        pre_filter=[PreFilters("A", node_names=["n1"])], filter=[Rejects("F", {"n1": "x", "n2": "y"})]
    )
    status = await find(profile, cluster(3), make_pod(nominated_node_name="n2"))

    assert "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [A], 1 x, 1 y." == status.message


async def test_a_nomination_to_an_unknown_node_is_no_matter():
    nodes = cluster(1)

    assert ["n1"] == names(await find(framework(), nodes, make_pod(nominated_node_name="gone")), nodes)


class FailsFirst(Rejects):
    def filter(self, state, pod, nodes):
        codes = super().filter(state, pod, nodes)
        if len(self.calls) == 1:
            raise ValueError("boom")
        return codes


@reports(
    "nominated-node-fails", log="`nominated node not looked at`, with pod and cause; all nodes are searched"
)
async def test_an_error_on_the_nominated_node_leads_to_the_full_search(caplog):
    nodes = cluster(2)
    found = await find(framework(filter=[FailsFirst("F")]), nodes, make_pod(nominated_node_name="n2"))

    assert ["n1", "n2"] == names(found, nodes)
    (line,) = caplog.messages
    assert line.startswith("nominated node not looked at pod=")
    assert "boom" in line


@pytest.mark.parametrize(
    ("priority", "fits"), [(0, ["n2"]), (5, ["n2"]), (6, ["n1", "n2"])], ids=["lower", "equal", "higher"]
)
async def test_nominated_pods_of_no_lower_priority_count_as_placed(priority, fits):
    nodes = cluster(2)
    nominator = FixedNominator({"n1": [make_pod("other", priority=5)]})
    plugin = OnePod()
    profile = framework(pre_filter=[plugin], filter=[plugin])

    assert fits == names(await find(profile, nodes, make_pod(priority=priority), nominator=nominator), nodes)


async def test_a_pod_does_not_stand_in_its_own_way():
    nodes = cluster(1)
    pod = make_pod(nominated_node_name="n1")
    plugin = OnePod()
    found = await find(
        framework(pre_filter=[plugin], filter=[plugin]), nodes, pod, nominator=FixedNominator({"n1": [pod]})
    )

    assert ["n1"] == names(found, nodes)


class Needs(OnePod):
    """Wants company: passes only where a pod is."""

    def filter(self, state, pod, nodes):
        del state, pod
        return (nodes.pod_count == 0).astype("uint8")


async def test_a_node_must_fit_without_the_nominated_pods_too():
    """They may never arrive, so nothing may depend on them."""
    plugin = Needs()
    status = await find(
        framework(pre_filter=[plugin], filter=[plugin]),
        cluster(1),
        nominator=FixedNominator({"n1": [make_pod("other")]}),
    )

    assert "0/1 nodes are available: 1 full." == status.message


async def test_nominations_on_nodes_that_are_gone_or_not_asked_about_are_no_matter():
    nodes = cluster(2)
    nominator = FixedNominator({"gone": [make_pod("x")], "n2": [make_pod("y")]})
    profile = framework(pre_filter=[PreFilters("A", node_names=["n1"])], filter=[Rejects("F", [])])

    assert ["n1"] == names(await find(profile, nodes, nominator=nominator), nodes)


@pytest.mark.parametrize(
    ("n", "percentage", "wanted"),
    [
        (10, 0, 10),
        (99, 30, 99),
        (1000, 40, 400),
        (6000, 40, 2400),
        (200, 10, 100),
        (5000, 100, 5000),
        (5000, 0, 5000),
        (100, 1, 100),
    ],
)
def test_how_many_feasible_nodes_are_enough(n, percentage, wanted):
    """The percentage where one is set, never below 100; by default every node is looked at."""
    assert wanted == nodes_to_find(n, percentage)


async def test_sampling_goes_round():
    """Each search starts where the last one ended; rejected nodes are passed over and count as seen."""
    nodes, rotation = cluster(300), Rotation()
    profile = framework(filter=[Rejects("F", [f"n{i}" for i in range(1, 11)])], percentage=50)

    first = await find(profile, nodes, rotation=rotation)
    assert (150, 160, 160) == (first.count, first.evaluated, rotation.start)
    assert [f"n{i}" for i in range(11, 161)] == names(first, nodes)

    second = await find(profile, nodes, rotation=rotation)
    assert (150, 160, 20) == (second.count, second.evaluated, rotation.start)
    assert {f"n{i}" for i in (*range(161, 301), *range(11, 21))} == set(names(second, nodes))


async def test_the_profile_s_percentage_goes_before_the_common_one():
    nodes = cluster(300)

    assert 150 == (await find(framework(percentage=50), nodes, percentage=80)).count
    assert 240 == (await find(framework(), nodes, percentage=80)).count
    assert 300 == (await find(framework(percentage=0), nodes, percentage=80)).count


async def test_sampling_a_narrowed_choice_counts_the_candidates():
    """Of 200 nodes left by PreFilter a tenth would be 20, so the least number of 100 holds."""
    nodes, rotation = cluster(1500), Rotation(10)
    chosen = [f"n{i}" for i in range(1001, 1201)]
    profile = framework(pre_filter=[PreFilters("A", node_names=chosen)], percentage=10)
    found = await find(profile, nodes, rotation=rotation)

    assert chosen[10:110] == names(found, nodes)
    assert 110 == rotation.start


async def test_too_few_feasible_nodes_end_no_search_early():
    nodes, rotation = cluster(300), Rotation(7)
    profile = framework(filter=[Rejects("F", [f"n{i}" for i in range(1, 201)])], percentage=50)
    found = await find(profile, nodes, rotation=rotation)

    assert (100, 300, 7) == (found.count, found.evaluated, rotation.start)


async def test_a_skipping_plugin_filters_nothing():
    nodes = cluster(1)

    class Both(PreFilters, Rejects):
        def __init__(self):
            Rejects.__init__(self, "B", ["n1"])
            self.status, self.node_names = SKIP, None

    plugin = Both()
    assert ["n1"] == names(await find(framework(pre_filter=[plugin], filter=[plugin]), nodes), nodes)


async def test_unresolvable_everywhere_leaves_preemption_nothing():
    status = await find(framework(pre_filter=[PreFilters("A", unresolvable("u"))]), cluster(2))

    assert [True, True] == diagnosis(status).rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist()
    assert Code.UNSCHEDULABLE is status.code
