"""From all nodes to those that fit (core 4.4 to 4.9)."""

import pytest

from berth.framework.extender import ExtenderVerdicts
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unresolvable, unschedulable
from tests.fakes import OnePod, PostFilters, PreFilters, PreScores, Rejects, Scores
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import PENDING, Doorkeeper
from tests.unit.evaluation.points.test_extending import Extends

SIMULTANEOUSLY = "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."


async def tried(*plugins, nodes=2, pod=None, **options):
    """One pod's attempt on some nodes."""
    cluster = Cluster(*plugins, **options)
    for number in range(nodes):
        cluster.add_node(f"n{number}")
    cluster.add_pod(**(pod or {}))
    await cluster.run()
    return cluster


def message(cluster, name="p0"):
    return cluster.condition(name).message


def rejectors(cluster):
    return cluster.queued().unschedulable_plugins


# 4.4: PreFilter.


async def test_4_4_1_restrictions_are_intersected():
    """Each plugin may name nodes; only those in all of their lists are looked at."""
    cluster = await tried(
        PreFilters("A", node_names=["n0", "n1"]), PreFilters("B", node_names=["n1", "n2"]), nodes=3
    )

    assert {"p0": "n1"} == cluster.bound


async def test_4_4_2_skip_leaves_a_plugins_filter_out():
    """What it returned beside that is ignored."""

    class Both(Rejects, PreFilters):
        def __init__(self):
            PreFilters.__init__(self, "A", SKIP, node_names=["n9"])
            self.verdicts, self.spelled = {"n0": "no"}, ["no"]

    cluster = await tried(Both(), nodes=1)

    assert {"p0": "n0"} == cluster.bound


async def test_4_4_3_and_11_6_2_the_last_unschedulable_counts():
    """The others are asked all the same; then all are named, and PostFilter sees every node so."""
    room = PostFilters("Room", unschedulable("no room"))
    cluster = await tried(PreFilters("A", unschedulable("a")), PreFilters("B", unschedulable("b")), room)

    assert "0/2 nodes are available: b. no room" == message(cluster)
    assert {"B"} == rejectors(cluster)
    assert [True, True] == room.diagnosis.rows_with(Code.UNSCHEDULABLE).tolist()


async def test_4_4_4_unresolvable_stops_at_once():
    """No other plugin is asked, and none that restricted the nodes is blamed."""
    last, room = PreFilters("C"), PostFilters("Room", SUCCESS)
    plugins = (PreFilters("A", node_names=["n0"]), PreFilters("B", unresolvable("never")), last, room)
    cluster = await tried(*plugins)

    assert ("0/2 nodes are available: never.", {"B"}, []) == (
        message(cluster),
        rejectors(cluster),
        last.calls,
    )
    assert [False, False] == room.diagnosis.rows_with(Code.UNSCHEDULABLE).tolist()


@pytest.mark.parametrize(
    "status", [failed("broken"), PENDING, Status(Code.WAIT, ("broken",))], ids=["error", "pending", "wait"]
)
async def test_4_4_5_anything_else_breaks_the_cycle(status):
    """Pending included; PostFilter is not run."""
    room = PostFilters("Room", SUCCESS)
    cluster = await tried(PreFilters("A", status), room)

    assert f'running PreFilter plugin "A": {status.message}' == message(cluster)
    assert ("SchedulerError", "error backoff", []) == (
        cluster.condition().reason,
        cluster.where(),
        room.calls,
    )


async def test_4_4_6_and_11_6_3_no_node_left_names_who_restricted():
    """One plugin, or several together; all of them are rejectors."""
    one = await tried(PreFilters("A", node_names=[]))
    both = await tried(PreFilters("B", node_names=["n1"]), PreFilters("A", node_names=["n0"]))

    assert "0/2 nodes are available: node(s) didn't satisfy plugin A." == message(one)
    assert (SIMULTANEOUSLY, {"A", "B"}) == (message(both), rejectors(both))


async def test_4_4_7_no_node_left_beats_an_earlier_unschedulable():
    """That one is lost."""
    cluster = await tried(PreFilters("A", unschedulable("a")), PreFilters("B", node_names=[]))

    assert "0/2 nodes are available: node(s) didn't satisfy plugin B." == message(cluster)
    assert {"B"} == rejectors(cluster)


async def test_4_4_8_an_absent_restriction_is_neutral():
    """All nodes, and all nodes with some left out."""
    cluster = await tried(PreFilters("A"), PreFilters("B", node_names=["n1"]), PreFilters("C"))

    assert {"p0": "n1"} == cluster.bound


async def test_4_4_9_a_rejected_pod_is_not_filtered():
    """The FitError says what PreFilter said; the plugin that restricted the nodes is blamed, too."""
    door = Doorkeeper("F")
    cluster = await tried(PreFilters("A", node_names=["n0"]), PreFilters("B", unschedulable("b")), door)

    assert ([], {"A", "B"}) == (door.calls, rejectors(cluster))


# 4.5: nominated nodes first.


async def test_4_5_1_and_11_6_8_a_nominated_node_that_fits_is_taken():
    """Whatever else would score better: it is not looked at."""
    scores = Scores("S", {"n0": 9})
    cluster = await tried(OnePod(), scores, nodes=8, pod={"nominated_node_name": "n7"})

    assert ({"p0": "n7"}, []) == (cluster.bound, scores.calls)
    assert 1 == cluster.records[0].evaluated_count


async def test_4_5_2_a_nominated_node_that_is_gone_is_no_matter():
    """The search goes on over all nodes."""
    cluster = await tried(OnePod(), nodes=1, pod={"nominated_node_name": "n9"})

    assert {"p0": "n0"} == cluster.bound


async def test_4_5_3_an_error_on_the_nominated_node_is_logged(caplog):
    """And the search goes on, where it may well meet it again."""
    extender = Extends(filter=RuntimeError("away"))
    cluster = await tried(OnePod(), nodes=1, pod={"nominated_node_name": "n0"}, extenders=[extender])

    assert 2 == len(extender.asked)
    assert "away" in caplog.text
    assert "SchedulerError" == cluster.condition().reason


async def test_4_5_4_a_nominated_node_that_does_not_fit_is_searched_again():
    """Its status is that of the full search, and counted once."""
    cluster = await tried(Rejects("A", {"n0": "full"}), nodes=1, pod={"nominated_node_name": "n0"})

    assert "0/1 nodes are available: 1 full." == message(cluster)


async def test_4_5_5_and_10_13_a_status_from_the_fast_path_stays_where_the_search_does_not_go():
    """PreFilter left the node out: its own reason counts all the same."""
    cluster = await tried(
        PreFilters("A", node_names=["n1"]),
        Rejects("B", {"n0": "full", "n1": "busy"}),
        nodes=3,
        pod={"nominated_node_name": "n0"},
    )

    expected = "0/3 nodes are available: 1 busy, 1 full, 1 node(s) didn't satisfy plugin(s) [A]."
    assert expected == cluster.records[0].status.message


async def test_4_5_6_the_fast_path_does_not_ask_prefilters_restriction():
    """A nominated node that PreFilter left out is taken if Filter lets it pass."""
    cluster = await tried(PreFilters("A", node_names=["n1"]), OnePod(), pod={"nominated_node_name": "n0"})

    assert {"p0": "n0"} == cluster.bound


async def test_4_5_7_extenders_have_a_say_on_the_nominated_node():
    """One that turns it down sends the pod into the full search."""
    extender = Extends(filter=["n1"])

    async def only_n1(attempt, nodes):
        del attempt
        return ExtenderVerdicts([node.name for node in nodes if node.name == "n1"])

    extender.filter = only_n1
    cluster = await tried(OnePod(), pod={"nominated_node_name": "n0"}, extenders=[extender])

    assert {"p0": "n1"} == cluster.bound


# 4.6: the search.


async def test_4_6_1_and_11_6_4_nodes_that_prefilter_left_out_have_a_reason():
    """The absent status, by the names of who restricted them."""
    room = PostFilters("Room", unschedulable("no room"))
    cluster = await tried(PreFilters("A", node_names=["n1"]), Rejects("B", {"n1": "x"}), room, nodes=3)

    assert "0/3 nodes are available: 1 x, 2 node(s) didn't satisfy plugin(s) [A]. no room" == message(cluster)
    assert [False, True, False] == room.diagnosis.rows_with(Code.UNSCHEDULABLE).tolist()


async def test_4_6_2_a_filter_that_breaks_ends_the_cycle():
    """The first error, with its plugin's name."""
    cluster = await tried(Doorkeeper(status=RuntimeError("broken")))

    assert 'running "A" filter plugin: broken' == message(cluster)
    assert "SchedulerError" == cluster.condition().reason


async def test_4_6_3_rejecting_plugins_are_remembered():
    """Those that left the pod pending, too; the first to turn a node down owns it."""
    cluster = await tried(
        Rejects("A", {"n0": "no"}), Rejects("B", {"n0": "never", "n1": PENDING.from_plugin("B")})
    )
    record = cluster.queued()

    assert ({"A", "B"}, {"B"}) == (record.unschedulable_plugins, record.pending_plugins)
    assert "0/2 nodes are available: 1 no, 1 not yet." == message(cluster)


async def test_4_6_4_the_filter_point_is_timed_as_success_or_error():
    """Never by the rejection; once for each search."""
    door = Doorkeeper(status={"p0": unschedulable("no"), "p1": RuntimeError("broken")})
    cluster = Cluster(door)
    cluster.add_node()
    for name in ("p0", "p1"):
        cluster.add_pod(name)
    await cluster.run()
    point = {"extension_point": "Filter", "profile": PROFILE}

    assert [1, 1, 0] == [
        cluster.metric("framework_extension_point_duration_seconds_count", status=status, **point)
        for status in ("Success", "Error", "Unschedulable")
    ]


# 4.7: nominated pods.


async def promised(room, *, priority, other=5, added=SUCCESS):
    """A pod's attempt on a node that another pod was promised."""
    plugin = OnePod(room=room, added=added)
    door = Doorkeeper("Door", status={"other": unschedulable("not yet")})
    cluster = Cluster(plugin, door, PostFilters("Keeps", unschedulable("kept")))
    cluster.add_node()
    cluster.add_pod("other", priority=other, nominated_node_name="n0")
    await cluster.run()
    cluster.add_pod("p0", priority=priority)
    await cluster.run()
    return cluster, plugin


@pytest.mark.parametrize(("priority", "bound"), [(4, False), (5, False), (6, True)])
async def test_4_7_1_and_11_6_9_promises_count_against_pods_of_no_higher_priority(priority, bound):
    """The nominated pod fills the node for them."""
    cluster, _ = await promised(1, priority=priority)

    assert bound == ("p0" in cluster.bound)


async def test_4_7_2_without_promises_there_is_one_pass():
    """The pod's own nomination is none of them."""
    plugin = OnePod()
    await tried(plugin, nodes=1, pod={"nominated_node_name": "n0"})

    assert [] == [call for call in plugin.calls if call.startswith("add")]


async def test_4_7_3_with_promises_both_passes_have_to_succeed():
    """First with them, through the PreFilter extensions, then without."""
    cluster, plugin = await promised(2, priority=1)

    assert "p0" in cluster.bound
    assert ["add other on n0"] == plugin.calls


async def test_4_7_4_an_extension_that_fails_breaks_the_cycle():
    """Not a rejection."""
    cluster, _ = await promised(2, priority=1, added=failed("cannot count"))

    assert "SchedulerError" == cluster.condition("p0").reason
    assert "cannot count" in message(cluster, "p0")


async def test_4_7_5_the_first_plugin_that_says_no_owns_the_node():
    """In the profile's order."""
    cluster = await tried(Rejects("A", {"n1": "a"}), Rejects("B", {"n0": "b", "n1": "b"}))

    assert "0/2 nodes are available: 1 a, 1 b." == message(cluster)


# 4.8: how many nodes are looked for.


@pytest.mark.parametrize(
    ("nodes", "percentage", "profile", "found"),
    [
        (10, 30, None, 10),
        (99, 30, None, 99),
        (1000, 40, None, 400),
        (1000, 0, 40, 400),
        (200, 10, None, 100),
        (300, 100, None, 300),
        (300, 0, None, 300),
    ],
)
async def test_4_8_1_a_percentage_of_the_nodes_is_enough(nodes, percentage, profile, found):
    """At least a hundred; the profile's value counts first; nought stands for every node."""
    cluster = Cluster(OnePod(), Scores("S"), settings={"percentageOfNodesToScore": percentage})
    cluster.core.profiles.frameworks[PROFILE].percentage_of_nodes_to_score = profile
    for number in range(nodes):
        cluster.add_node(f"n{number}")
    cluster.add_pod()
    await cluster.run()

    assert found == cluster.records[0].feasible_count


async def test_4_8_2_a_profiles_nought_counts_before_the_global_value():
    """Present is present."""
    cluster = Cluster(OnePod(), Scores("S"), settings={"percentageOfNodesToScore": 50})
    cluster.core.profiles.frameworks[PROFILE].percentage_of_nodes_to_score = 0
    for number in range(300):
        cluster.add_node(f"n{number}")
    cluster.add_pod()
    await cluster.run()

    assert 300 == cluster.records[0].feasible_count


# 4.9: extenders.


def verdicts(**answers):
    return Extends(filter=ExtenderVerdicts(**answers))


async def test_4_9_1_extenders_are_asked_after_the_filters_one_by_one():
    """Each about what the one before it left."""
    first, second = Extends("first", filter=["n1", "n2"]), Extends("second", filter=["n2"])
    cluster = await tried(Rejects("A", {"n0": "no"}), nodes=4, extenders=[first, second])

    assert ([["n1", "n2", "n3"]], [["n1", "n2"]]) == (first.asked, second.asked)
    assert {"p0": "n2"} == cluster.bound


async def test_4_9_2_an_extender_that_does_not_care_is_not_asked():
    """Nor one without a filter verb."""
    other, scores_only = Extends("other", about="other pods", filter=[]), Extends("scores", prioritize={})
    cluster = await tried(OnePod(), extenders=[other, scores_only])

    assert [] == other.asked
    assert 1 == len(cluster.bound)


async def test_4_9_3_an_ignorable_extender_may_fail(caplog):
    """It is logged, and the nodes stay; any other's failure breaks the cycle."""
    away = RuntimeError("away")
    fine = await tried(OnePod(), extenders=[Extends(ignorable=True, filter=away)])
    broken = await tried(OnePod(), extenders=[Extends(filter=away)])

    assert ({"p0"}, "away") == (set(fine.bound), message(broken))
    assert "SchedulerError" == broken.condition().reason
    assert "away" in caplog.text


async def test_4_9_4_an_extenders_reasons_are_the_nodes():
    """Those that no removal of pods changes count first; none of them names a plugin but Extender."""
    said = {"passed": [], "failed": {"n0": "f", "n1": "f"}, "unresolvable": {"n1": "u"}}
    room = PostFilters("Room", unschedulable("no room"))
    cluster = await tried(OnePod(), room, extenders=[verdicts(**said)])

    assert "0/2 nodes are available: 1 f, 1 u. no room" == message(cluster)
    assert {"Extender"} == rejectors(cluster)
    assert [True, False] == room.diagnosis.rows_with(Code.UNSCHEDULABLE).tolist()


async def test_4_9_5_once_no_node_is_left_no_extender_is_asked():
    """The next extender would have nothing to say."""
    second = Extends("second", filter=["n0"])
    await tried(OnePod(), extenders=[verdicts(passed=[]), second])

    assert [] == second.asked


# 4.6 again: a search that stops early.


class Sees(PreScores):
    """Notes by name which nodes are left to be scored."""

    def pre_score(self, state, pod, nodes, feasible):
        self.seen = [name for name, fits in zip(nodes.names, feasible, strict=True) if fits]
        return super().pre_score(state, pod, nodes, feasible)


async def sampling(nodes, percentage, *plugins, **options):
    """A cluster that looks at a part of its nodes, and what it saw of them."""
    sees = Sees("Sees", SUCCESS)
    cluster = Cluster(*plugins, sees, settings={"percentageOfNodesToScore": percentage}, **options)
    for number in range(nodes):
        cluster.add_node(f"n{number}", labels={"topology.kubernetes.io/zone": f"z{number % 2}"})
    return cluster, sees


async def test_4_6_5_with_nothing_to_score_with_one_node_is_enough():
    """Each search goes on where the one before it stopped."""
    cluster = Cluster(OnePod(room=9))
    for name in ("n0", "n1", "n2"):
        cluster.add_node(name)
    for number in range(4):
        cluster.add_pod(f"p{number}")
        await cluster.run()

    assert ["n0", "n1", "n2", "n0"] == [cluster.bound[f"p{number}"] for number in range(4)]
    assert {1} == {record.feasible_count for record in cluster.records}


async def test_4_6_6_and_11_6_7_searches_stop_early_and_go_on_from_there():
    """500 nodes at 46 %: 230 nodes, then the next 230."""
    cluster, sees = await sampling(500, 46)
    seen = []
    for name in ("p0", "p1"):
        cluster.add_pod(name)
        await cluster.run()
        seen.append(sorted(int(node[1:]) for node in sees.seen))
    search = cluster.core.schedule_one.real.algorithm.search

    assert [list(range(230)), list(range(230, 460))] == seen
    assert 460 == search.rotation.start


async def test_4_6_7_all_profiles_share_the_start():
    """A search of another profile goes on where this one's ended."""
    sees = Sees("Sees", SUCCESS), Sees("Others", SUCCESS)
    profiles = {PROFILE: [sees[0]], "other": [sees[1]]}
    cluster = Cluster(profiles=profiles, settings={"percentageOfNodesToScore": 50})
    for number in range(300):
        cluster.add_node(f"n{number}")
    cluster.add_pod("p0")
    cluster.add_pod("p1", scheduler_name="other")
    await cluster.run()

    assert (150, 150) == (len(sees[0].seen), len(sees[1].seen))
    assert set() == set(sees[0].seen) & set(sees[1].seen)


async def test_4_6_6_nodes_that_were_turned_down_count_as_looked_at():
    """The search goes on until it has enough, and the next one begins behind all of them."""
    full = {f"n{number}": "full" for number in range(50)}
    cluster, sees = await sampling(200, 50, Rejects("A", full))
    cluster.add_pod()
    await cluster.run()

    assert {f"n{number}" for number in range(50, 150)} == set(sees.seen)
    assert 150 == cluster.records[0].evaluated_count
