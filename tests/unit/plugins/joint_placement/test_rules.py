"""Which members of a group are alike, and which rules there are between them."""

import pytest

from berth.objects.pods.pod_spec import TopologySpreadConstraint
from berth.plugins.joint_placement.rules import Apart, Even, Near, RuleReader, alone
from berth.testing.builders import make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_handle
from tests.unit.pod_groups.kit import HOST, ZONE, apart, even, member, near, node

NODES = [node("n0", zone="a"), node("n1", zone="b")]


def reader():
    return RuleReader(make_handle())


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        pytest.param({}, 1, id="a label that no rule reads"),
        pytest.param({"affinity": apart(HOST, app="g")}, 1, id="a rule that reads another label"),
        pytest.param({"affinity": apart(HOST, index="0")}, 2, id="a rule that reads it"),
    ],
)
def test_pods_are_alike_by_what_rules_read(more, kinds):
    """Pods of an indexed job differ in a label each."""
    pods = [member(f"p{i}", labels={"index": str(i)}, **more) for i in range(2)]

    assert kinds == len(reader().kinds(pods))


def rules_of(pods, placed=()):
    return list(reader().rules(pods, table(NODES, placed)))


def test_anti_affinity_keeps_kinds_apart():
    """The one that has the term from all that it means, itself included."""
    (rule,) = rules_of([member("a", affinity=apart(HOST, app="g")), member("b")])

    assert isinstance(rule, Apart)
    assert (0, {0, 1}) == (rule.kind, rule.avoided)


@pytest.mark.parametrize(
    ("placed", "starts", "met"),
    [
        pytest.param([], True, [], id="none is there"),
        pytest.param(
            [make_pod("old", labels={"app": "g"}, node_name="n1")], False, ["n1"], id="one is there"
        ),
    ],
)
def test_affinity_draws_a_kind_to_those_it_seeks(placed, starts, met):
    """Pods that seek themselves may begin anywhere, as long as none of them is anywhere."""
    (rule,) = rules_of([member("a", affinity=near(ZONE, app="g"))], placed)

    assert isinstance(rule, Near)
    assert (starts, {0}) == (rule.starts, rule.sought)
    assert met == [NODES[row].name for row in range(2) if rule.met[rule.place_of[row]]]


def test_spreading_counts_pods_that_are_placed():
    """Two in the one zone, none in the other."""
    placed = [make_pod(f"old-{i}", labels={"app": "g"}, node_name="n0") for i in range(2)]
    (rule,) = rules_of([member("a", topology_spread_constraints=even(ZONE))], placed)

    assert isinstance(rule, Even)
    assert [2, 0] == [rule.pods[rule.place_of[row]] for row in range(2)]
    assert 1 == rule.max_skew


def test_soft_constraints_are_no_rules():
    """They score, and the engine says how."""
    soft = TopologySpreadConstraint(1, ZONE, "ScheduleAnyway", even(ZONE)[0].label_selector)

    assert [] == rules_of([member("a", topology_spread_constraints=(soft,))])


def test_alone_leaves_out_what_a_plan_keeps_itself():
    """Required affinity and the skew; anti-affinity and the label that is spread over stay."""
    pod = alone(member("a", affinity=near(ZONE, app="g"), topology_spread_constraints=even(ZONE)))

    assert () == pod.spec.affinity.pod_affinity.required
    assert [ZONE] == [each.topology_key for each in pod.spec.topology_spread_constraints]
    assert 1 < pod.spec.topology_spread_constraints[0].max_skew
    assert apart(HOST, app="g") == alone(member("b", affinity=apart(HOST, app="g"))).spec.affinity
