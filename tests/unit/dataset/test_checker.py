"""The checker finds each kind of violation, and finds none in a valid state."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import berth.demo.checker
from berth.demo.checker import Rule, check
from tests.unit.dataset.states import (
    GPU,
    changed,
    fixed_state,
    gpu_pod_document,
    node_document,
    pod_document,
    scheduled,
    valid_states,
)


def run(state, **options):
    return check(state.nodes, state.pods, state.events, **options)


def affinity(**requirement):
    term = {"matchExpressions": [requirement]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def host_port(state, name, **port):
    state.pod(name)["spec"]["containers"][0]["ports"] = [{"containerPort": 1, **port}]


def taint(state, effect):
    state.node()["spec"]["taints"] = [{"key": "k", "value": "v", "effect": effect}]


VIOLATIONS = [
    pytest.param(
        lambda s: s.requests("plain").update(cpu="4001m"),
        "overcommitted: node fixed: cpu: 8.001 taken by 5 pods, 8 offered",
        id="cpu by a thousandth",
    ),
    pytest.param(
        lambda s: s.requests("plain").update(memory="30064771073"),
        "overcommitted: node fixed: memory: 34359738369 taken by 5 pods, 34359738368 offered",
        id="memory by a byte",
    ),
    pytest.param(
        lambda s: s.node()["status"]["allocatable"].update(pods="4"),
        "overcommitted: node fixed: pods: 5 taken by 5 pods, 4 offered",
        id="pods",
    ),
    pytest.param(
        lambda s: s.node()["status"]["allocatable"].pop("pods"),
        "overcommitted: node fixed: pods: 5 taken by 5 pods, 0 offered",
        id="pods, none offered",
    ),
    pytest.param(
        lambda s: s.requests("plain").update({"example.com/fpga": 1}),
        "overcommitted: node fixed: example.com/fpga: 1 taken by 1 pods, 0 offered",
        id="extended resource",
    ),
    pytest.param(
        lambda s: s.node()["status"]["allocatable"].update({f"{GPU}/milli-gpu": "1832"}),
        f"overcommitted: node fixed: {GPU}/milli-gpu: 1833 taken by 3 pods, 1832 offered",
        id="milli-GPU",
    ),
    pytest.param(
        lambda s: s.pod("plain")["spec"].update(overhead={"cpu": "10"}),
        "overcommitted: node fixed: cpu: 15 taken by 5 pods, 8 offered",
        id="overhead",
    ),
    pytest.param(
        lambda s: s.annotations("half").pop(f"{GPU}/devices"),
        "gpu devices: pod ns/half: asks for 1 GPUs and holds 0 (node fixed)",
        id="no device",
    ),
    pytest.param(
        lambda s: s.annotations("plain").update({f"{GPU}/devices": "2"}),
        "gpu devices: pod ns/plain: asks for 0 GPUs and holds 1 (node fixed)",
        id="device without asking",
    ),
    pytest.param(
        lambda s: s.annotations("half").update({f"{GPU}/devices": "3"}),
        "gpu devices: pod ns/half: holds devices 3 where the node has 3 (node fixed)",
        id="device that does not exist",
    ),
    pytest.param(
        lambda s: s.annotations("half").update({f"{GPU}/devices": "1,2"}),
        "gpu devices: pod ns/half: asks for 1 GPUs and holds 2 (node fixed)",
        id="one device too many",
    ),
    pytest.param(
        lambda s: s.bind(gpu_pod_document("pair", 100, "2,2"), "fixed"),
        "gpu devices: pod ns/pair: holds a device twice: 2,2 (node fixed)",
        id="one device twice",
    ),
    pytest.param(
        lambda s: s.annotations("half").update({f"{GPU}/devices": "gpu1"}),
        f"gpu devices: pod ns/half: annotation {GPU}/devices is 'gpu1', no list of indices (node fixed)",
        id="no index",
    ),
    pytest.param(
        lambda s: s.annotations("half").update({f"{GPU}/milli": "400"}),
        "gpu devices: pod ns/half: asks for 500 milli-GPU, annotated as 1 GPUs with 400 of each (node fixed)",
        id="annotation and request differ",
    ),
    pytest.param(
        lambda s: s.bind(gpu_pod_document("b", 1200, "2"), "fixed"),
        "gpu devices: pod ns/b: asks for 1200 milli-GPU, annotated as 1 GPUs with 1200 of each (node fixed)",
        id="more than a device of one device",
    ),
    pytest.param(
        lambda s: s.annotations("half").update({f"{GPU}/devices": "0"}),
        "gpu devices: node fixed device 0: held whole by one pod and shared: ns/whole, ns/half",
        id="whole device shared",
    ),
    pytest.param(
        lambda s: s.bind(gpu_pod_document("more", 168, "1"), "fixed"),
        "gpu devices: node fixed device 1: 1001 of 1000 milli taken by ns/half, ns/third, ns/more",
        id="device over by a thousandth",
    ),
    pytest.param(
        lambda s: s.node()["metadata"]["labels"].update({f"{GPU}/model": "G2"}),
        "gpu model: pod ns/half: accepts T4|V100, node fixed has G2",
        id="GPU model",
    ),
    pytest.param(
        lambda s: s.node()["metadata"]["labels"].pop(f"{GPU}/model"),
        "gpu model: pod ns/half: accepts T4|V100, node fixed has no GPU model",
        id="no GPU model",
    ),
    pytest.param(
        lambda s: s.pod("plain")["spec"].update(nodeSelector={"disk": "hdd"}),
        "node selector: pod ns/plain: wants disk=hdd, node fixed has disk=ssd",
        id="node selector",
    ),
    pytest.param(
        lambda s: s.pod("plain")["spec"].update(nodeSelector={"rack": "1"}),
        "node selector: pod ns/plain: wants rack=1, node fixed has no rack",
        id="node selector, no label",
    ),
    pytest.param(
        lambda s: s.pod("plain")["spec"].update(affinity(key="disk", operator="In", values=["hdd"])),
        "node affinity: pod ns/plain: no term of its required node affinity holds for node fixed",
        id="node affinity",
    ),
    pytest.param(
        lambda s: taint(s, "NoSchedule"),
        "taints: pod ns/plain: does not tolerate k=v:NoSchedule of node fixed",
        id="taint",
    ),
    pytest.param(
        lambda s: taint(s, "NoExecute"),
        "taints: pod ns/plain: does not tolerate k=v:NoExecute of node fixed",
        id="NoExecute taint",
    ),
    pytest.param(
        lambda s: (host_port(s, "plain", hostPort=80), host_port(s, "other", hostPort=80, hostIP="10.0.0.1")),
        "host ports: pod ns/other: port 80/TCP of node fixed is taken by ns/plain as well",
        id="host port",
    ),
    pytest.param(
        lambda s: (
            host_port(s, "plain", hostPort=80),
            s.pod("other")["spec"].update(
                initContainers=[{"name": "i", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}]
            ),
        ),
        "host ports: pod ns/other: port 80/TCP of node fixed is taken by ns/plain as well",
        id="host port of a sidecar",
    ),
    pytest.param(
        lambda s: s.pod("plain")["spec"].update(nodeName="gone"),
        "node missing: pod ns/plain: is on node gone, which does not exist",
        id="node missing",
    ),
    pytest.param(
        lambda s: s.requests("plain").update(cpu="one"),
        "unreadable: pod ns/plain: cpu: 'one' is no quantity",
        id="unreadable pod",
    ),
    pytest.param(
        lambda s: s.node()["status"]["allocatable"].update(cpu="many"),
        "unreadable: node fixed: cpu: 'many' is no quantity",
        id="unreadable node",
    ),
    pytest.param(
        lambda s: s.pods.append(s.pod("plain")),
        "listed twice: pod ns/plain: is listed 2 times",
        id="pod twice",
    ),
    pytest.param(
        lambda s: s.nodes.append(s.node()), "listed twice: node fixed: is listed 2 times", id="node twice"
    ),
    pytest.param(
        lambda s: s.events.remove(s.event("plain")),
        "bound once: pod ns/plain: is on node fixed without a Scheduled event",
        id="no event",
    ),
    pytest.param(
        lambda s: s.events.append(scheduled(s.pod("plain"), "n9")),
        "bound once: pod ns/plain: was scheduled 2 times, to fixed, n9",
        id="bound twice",
    ),
    pytest.param(
        lambda s: s.event("plain").update(series={"count": 2}),
        "bound once: pod ns/plain: was scheduled 2 times, to fixed",
        id="bound twice, one event",
    ),
    pytest.param(
        lambda s: s.event("plain").update(note="Successfully assigned ns/plain to n9"),
        "bound once: pod ns/plain: was scheduled to n9 and is on fixed",
        id="event names another node",
    ),
    pytest.param(
        lambda s: s.event("plain").update(note="done"),
        "bound once: pod ns/plain: was scheduled to a node it does not name ('done') and is on fixed",
        id="event names no node",
    ),
    pytest.param(
        lambda s: s.events.append(scheduled(s.pod("waiting"), "fixed")),
        "bound once: pod ns/waiting: was scheduled to fixed and is on no node",
        id="event without binding",
    ),
    pytest.param(
        lambda s: s.event("plain")["regarding"].update(uid="another life"),
        "bound once: pod ns/plain: is on node fixed without a Scheduled event",
        id="event of a namesake",
    ),
]


@given(state=valid_states())
def test_valid_state(state):
    """A state in which everything fits has no violation."""
    report = run(state)

    assert report.violations == ()
    assert report.with_event == report.bound
    assert (report.nodes, report.pods) == (len(state.nodes), len(state.pods))


@pytest.mark.parametrize(("change", "line"), VIOLATIONS)
def test_violation(change, line):
    """Each kind of violation is reported in words that say what is wrong with whom."""
    assert line in [str(violation) for violation in run(changed(fixed_state(), change)).violations]


@given(state=valid_states(), case=st.sampled_from([case.values for case in VIOLATIONS]))
def test_violation_among_others(state, case):
    """A violation is found whatever else goes on in the cluster."""
    change, line = case

    assert line in [str(violation) for violation in run(changed(state, change)).violations]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda s: s.pod("plain")["spec"].update(nodeSelector={"disk": "ssd"}), id="selector"),
        pytest.param(lambda s: taint(s, "PreferNoSchedule"), id="soft taint"),
        pytest.param(
            lambda s: s.node()["spec"].update(
                unschedulable=True,
                taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
            ),
            id="cordoned later",
        ),
        pytest.param(
            lambda s: (
                host_port(s, "plain", hostPort=80),
                host_port(s, "other", hostPort=80, protocol="UDP"),
            ),
            id="same port, other protocol",
        ),
        pytest.param(
            lambda s: (
                host_port(s, "plain", hostPort=80, hostIP="10.0.0.2"),
                host_port(s, "other", hostPort=80, hostIP="10.0.0.1"),
            ),
            id="same port, other address",
        ),
        pytest.param(
            lambda s: s.pod("plain")["spec"]["containers"][0].update(
                ports=[{"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}]
            ),
            id="same port twice in one pod",
        ),
        pytest.param(
            lambda s: s.annotations("plain").update({f"{GPU}/models": "A10"}),
            id="a pod without GPUs names models",
        ),
        pytest.param(
            lambda s: (s.requests("plain").update(cpu="99"), s.pod("plain")["status"].update(phase="Failed")),
            id="an ended pod takes nothing",
        ),
        pytest.param(lambda s: s.requests("waiting").update(cpu="99"), id="a waiting pod takes nothing"),
        pytest.param(
            lambda s: s.requests("plain").update({"example.com/fpga": "0"}), id="none of a resource"
        ),
        pytest.param(
            lambda s: [s.annotations("half").pop(f"{GPU}/{name}") for name in ("count", "milli", "models")],
            id="a share without annotations",
        ),
        pytest.param(lambda s: s.node()["metadata"]["labels"].pop(f"{GPU}/count"), id="no count of devices"),
        pytest.param(
            lambda s: s.events.append({**s.event("plain"), "reason": "Started"}), id="another event"
        ),
        pytest.param(lambda s: s.pods.remove(s.pod("plain")), id="events of a deleted pod"),
    ],
)
def test_no_violation(change):
    """What looks like a violation and is none is left alone."""
    assert run(changed(fixed_state(), change)).violations == ()


@pytest.mark.parametrize(
    "options",
    [{"missing_events_allowed": True}, {"placed_by_others": {"ns/plain"}}],
)
def test_missing_event_can_be_allowed(options):
    """A pod without an event is fine where the caller knows why."""
    state = changed(fixed_state(), lambda s: s.events.remove(s.event("plain")))

    report = run(state, **options)
    assert report.ok
    assert "5 of them bound, 4 by an event once: every" in report.lines()[0]


def test_without_events():
    """Without events the report says that nothing is proven about binding twice."""
    state = fixed_state()
    report = check(state.nodes, state.pods)

    assert report.ok
    assert report.with_event == 0
    assert "each once" not in report.lines()[0]


def test_lines():
    """A report is a verdict and a limited number of violations."""
    state = fixed_state()
    verdict = "every placement is allowed and no node is overcommitted"
    assert run(state).lines() == [f"checked 1 nodes, 6 pods, 5 of them bound, each once: {verdict}"]
    assert check([], state.pods, state.events).lines(limit=2) == [
        "checked 0 nodes, 6 pods, 5 of them bound: 5 violations",
        "  node missing: pod ns/half: is on node fixed, which does not exist",
        "  node missing: pod ns/other: is on node fixed, which does not exist",
        "  and 3 more",
    ]


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        ({"key": "disk", "operator": "In", "values": ["hdd", "ssd"]}, True),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, False),
        ({"key": "rack", "operator": "NotIn", "values": ["ssd"]}, True),
        ({"key": "disk", "operator": "Exists"}, True),
        ({"key": "rack", "operator": "Exists"}, False),
        ({"key": "rack", "operator": "DoesNotExist"}, True),
        ({"key": "disk", "operator": "DoesNotExist"}, False),
        ({"key": "rank", "operator": "Gt", "values": ["6"]}, True),
        ({"key": "rank", "operator": "Gt", "values": ["7"]}, False),
        ({"key": "rank", "operator": "Lt", "values": ["8"]}, True),
        ({"key": "rank", "operator": "Lt", "values": ["7"]}, False),
        ({"key": "rank", "operator": "Lt", "values": ["8", "9"]}, False),
        ({"key": "disk", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "rack", "operator": "Gt", "values": ["0"]}, False),
        ({"key": "disk", "operator": "Near", "values": ["ssd"]}, False),
    ],
)
def test_node_affinity(requirement, holds):
    """Each operator means what the API says."""
    state = changed(fixed_state(), lambda s: s.pod("plain")["spec"].update(affinity(**requirement)))

    assert holds == run(state).ok


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        ([], False),
        ([{}], False),
        ([{}, {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["fixed"]}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["fixed"]}]}], False),
        (
            [
                {
                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["fixed"]}],
                    "matchExpressions": [{"key": "rack", "operator": "Exists"}],
                }
            ],
            False,
        ),
    ],
)
def test_node_selector_terms(terms, holds):
    """One term must hold, whole; a term that asks nothing never does."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    state = changed(
        fixed_state(), lambda s: s.pod("plain")["spec"].update(affinity={"nodeAffinity": required})
    )

    assert holds == run(state).ok


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "5"}, True),
        ({"key": "k", "operator": "Equal", "value": "6"}, False),
        ({"key": "l", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Gt", "value": "4"}, True),
        ({"key": "k", "operator": "Gt", "value": "5"}, False),
        ({"key": "k", "operator": "Lt", "value": "6"}, True),
        ({"key": "k", "operator": "Lt", "value": "x"}, False),
        ({"key": "k", "operator": "Near", "value": "5"}, False),
    ],
)
def test_tolerations(toleration, tolerated):
    """A hard taint needs a toleration of its key, value and effect."""
    state = fixed_state()
    node = node_document("n1", taints=[{"key": "k", "value": "5", "effect": "NoSchedule"}])
    state.nodes.append(node)
    state.bind(pod_document("p1", tolerations=[toleration]), "n1")

    assert tolerated == run(state).ok


def test_every_rule_has_a_case():
    """No rule goes untested."""
    assert {line.partition(":")[0] for _, line in (case.values for case in VIOLATIONS)} == set(Rule)


def test_independent_of_the_scheduler():
    """The checker imports nothing of Berth but itself, so it cannot share a mistake."""
    for path in Path(berth.demo.checker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for module in modules:
                assert not module.startswith("berth") or module.startswith("berth.demo.checker")
