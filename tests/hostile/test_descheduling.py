"""What pods and policies say does not make a plan wrong, endless or dear."""

import pytest

from berth.config.descheduling.policy_file import read_policy
from berth.config.errors import PolicyError
from berth.descheduling.waiting_units import MAX_WAITING
from berth.evaluation.find_nodes import NodeSearch
from berth.objects.pods.pod_decoding import pod_from_document
from berth.simulation.cluster.disruption_budgets import Budgets
from tests.hostile.work import calls, growth
from tests.unit.descheduling.kit import moves, node, planned, policy, running
from tests.unit.preemption.kit import budget
from tests.unit.simulation.kit import pod

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def aliases(levels):
    """Lists of lists of lists by reference: nine to the power of so many."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join(9 * [f'*a{i - 1}'])}]" for i in range(1, levels)]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD + aliases(9), id="aliases of aliases"),
        pytest.param(HEAD + "profiles: &a [*a]\n", id="an anchor within itself"),
        pytest.param(HEAD + "profiles: " + "[" * 400 + "]" * 400, id="deep lists"),
        pytest.param('{"a":' * 5_000 + "1" + "}" * 5_000, id="deep JSON"),
        pytest.param(HEAD + "maxNoOfPodsToEvictTotal: " + "9" * 5_000, id="a long number"),
        pytest.param(HEAD + "maxNoOfPodsToEvictTotal: .inf", id="infinity"),
        pytest.param(HEAD + "profiles: [{name: a}]\nnodeSelector: '" + "(" * 50_000 + "'", id="brackets"),
        pytest.param(HEAD + "profiles: [" + "{name: a}," * 101 + "]", id="many profiles"),
        pytest.param(HEAD + 'profiles: "\\ud800"', id="half a character"),
        pytest.param("\ufffe\x00\x01", id="bytes"),
    ],
)
def test_policies(text):
    """Each is refused in words that name the file, and are not long."""
    with pytest.raises(PolicyError) as refused:
        read_policy(text.encode(errors="surrogatepass"), "policy.yaml")

    assert str(refused.value).startswith("policy.yaml: ")
    assert len(str(refused.value)) < 1_000


def test_a_replica_costs_no_engine_of_its_own(tmp_path):
    """Pods that are alike on one node are tried once, however many they are."""
    taint = [{"key": "old", "value": "x", "effect": "NoSchedule"}]
    nodes = node("n0", cpu="1000", taints=taint), node("n1", cpu="1")

    def case(count):
        pods = [running(f"p{i}", "n0", cpu="2") for i in range(count)]
        return lambda: planned(tmp_path, policy("RemovePodsViolatingNodeTaints"), *nodes, *pods)

    case(10)()
    assert growth(case, 25) < 1.3


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, id="selector"
        ),
        pytest.param({"topologyKey": ""}, id="no key"),
        pytest.param({"maxSkew": 0}, id="no skew"),
        pytest.param({"maxSkew": -5}, id="skew below nothing"),
    ],
)
def test_constraints_that_no_server_would_take(tmp_path, text):
    """A pod that an old server let in moves for no rule that cannot be read."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        **text,
    }
    nodes = [node(f"n{i}", labels={"zone": f"z{i}"}) for i in range(2)]
    odd = [
        running(f"p{i}", "n0", labels={"app": "a"}, topologySpreadConstraints=[constraint]) for i in range(3)
    ]

    found = planned(tmp_path, policy("RemovePodsViolatingTopologySpreadConstraint"), *nodes, *odd)

    assert all(to == "n1" for _, _, to in moves(found))
    assert len(found.moves) <= 3


def test_nodes_that_score_alike_cost_no_question_each(tmp_path, monkeypatch):
    """The engine is asked about all nodes together, however many the scheduler may choose between."""
    asked, find = [], NodeSearch.find

    async def noted(self, framework, attempt, answers):
        asked.append(attempt.pod.key)
        return await find(self, framework, attempt, answers)

    monkeypatch.setattr(NodeSearch, "find", noted)
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }

    def questions(count):
        nodes = [node(f"n{i}", labels={"kubernetes.io/hostname": f"n{i}"}) for i in range(count)]
        pods = [
            running(f"p{i}", "n0", labels={"app": "a"}, topologySpreadConstraints=[constraint])
            for i in range(4)
        ]
        asked.clear()
        found = planned(tmp_path, policy("RemovePodsViolatingTopologySpreadConstraint"), *nodes, *pods)
        return len(found.moves), len(asked)

    assert questions(8) == questions(24)


def test_budgets_are_not_multiplied_by_pods():
    """Each budget is asked once about pods that are alike."""
    pods = [pod_from_document(running(f"p{i}", "n0", labels={"app": "a"})) for i in range(50)]

    def case(count):
        written = [budget(f"b{i}", {"app": "a"}) for i in range(count)]

        def work():
            budgets = Budgets(written)
            return [budgets.why_not([pod]) for pod in pods]

        return work

    case(1)()
    assert calls(case(400)) - calls(case(200)) < 200 * len(pods)


def test_pods_that_fit_nowhere_are_a_bounded_cost(tmp_path):
    """Kinds of pods that wait are tried up to a bound, and the plan says where there were more."""
    taint = [{"key": "old", "value": "x", "effect": "NoSchedule"}]
    nodes = node("n0", taints=taint), node("n1")
    waiting = [pod(f"w{i}", cpu="100", labels={"kind": str(i)}) for i in range(MAX_WAITING + 2)]

    found = planned(tmp_path, policy("RemovePodsViolatingNodeTaints"), *nodes, running("a", "n0"), *waiting)

    assert [("a", "n0", "n1")] == moves(found)
    assert found.notes[0].startswith("2 kinds of pods that wait were not tried for the room that moves leave")


def test_a_pod_on_a_node_that_is_gone(tmp_path):
    """It is not moved, and does not disturb the others."""
    taint = [{"key": "old", "value": "x", "effect": "NoSchedule"}]
    pods = running("lost", "gone"), running("a", "n0")

    found = planned(
        tmp_path,
        policy(
            "RemovePodsViolatingNodeTaints", "RemoveDuplicates", "RemovePodsViolatingInterPodAntiAffinity"
        ),
        node("n0", taints=taint),
        node("n1"),
        *pods,
    )

    assert [("a", "n0", "n1")] == moves(found)
