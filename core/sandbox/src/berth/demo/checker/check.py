"""All rules over one state of the cluster."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from berth.demo.checker.bindings import bound_with_event, check_bindings
from berth.demo.checker.capacity import check_capacity
from berth.demo.checker.devices import check_devices, check_model
from berth.demo.checker.documents import (
    CheckedPod,
    Document,
    NodeFacts,
    has_ended,
    key_of,
    name_of,
    node_facts,
    node_of,
    pod_facts,
)
from berth.demo.checker.placement import check_host_ports, check_selectors, check_taints
from berth.demo.checker.quantity import UnreadableError
from berth.demo.checker.report import CheckReport, Rule, Violation

OF_EACH_POD = (check_selectors, check_taints, check_model)
OF_ALL_PODS = (check_capacity, check_devices, check_host_ports)

F = TypeVar("F")


def check(
    nodes: Sequence[Document],
    pods: Sequence[Document],
    events: Sequence[Document] | None = None,
    *,
    placed_by_others: Collection[str] = (),
    missing_events_allowed: bool = False,
) -> CheckReport:
    """Look for every violation in one state of the API, at rest.

    `events` are events.k8s.io or core events; None leaves open whether a pod was bound twice.
    `placed_by_others` are pods, as namespace/name, that were created with a node and so have no event.
    `missing_events_allowed` is for schedulers that were killed: a binding may have outlived its event.
    """
    bound = [pod for pod in pods if node_of(pod)]
    active = [pod for pod in bound if not has_ended(pod)]
    node_list, unreadable_nodes = _read(nodes, node_facts, lambda node: f"node {name_of(node)}")
    pod_list, unreadable_pods = _read(active, pod_facts, lambda pod: f"pod {key_of(pod)}")
    names = {name_of(node) for node in nodes}
    found = chain(
        unreadable_nodes,
        unreadable_pods,
        _listed_twice("node", map(name_of, nodes)),
        _listed_twice("pod", map(key_of, pods)),
        _on_missing_nodes(pod_list, names),
        _on_nodes({node.name: node for node in node_list}, pod_list),
        check_bindings(
            pods,
            events or (),
            placed_by_others=placed_by_others,
            missing_events_allowed=missing_events_allowed or events is None,
        ),
    )
    violations = tuple(sorted(found))
    with_event = len(bound_with_event(bound, events or ()))
    return CheckReport(violations, len(nodes), len(pods), len(bound), len(active), with_event)


def _on_nodes(nodes: Mapping[str, NodeFacts], pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    placed = defaultdict(list)
    for pod in pods:
        placed[pod.node].append(pod)
    for name in nodes.keys() & placed.keys():
        for rule_of_all in OF_ALL_PODS:
            yield from rule_of_all(nodes[name], placed[name])
        for rule_of_each in OF_EACH_POD:
            for pod in placed[name]:
                yield from rule_of_each(nodes[name], pod)


def _on_missing_nodes(pods: Sequence[CheckedPod], names: Collection[str]) -> Iterator[Violation]:
    for pod in pods:
        if pod.node not in names:
            yield Violation(Rule.NODE_MISSING, pod.subject, f"is on node {pod.node}, which does not exist")


def _listed_twice(kind: str, names: Iterator[str]) -> Iterator[Violation]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Violation(Rule.LISTED_TWICE, f"{kind} {name}", f"is listed {times} times")


def _read(
    documents: Sequence[Document], read: Callable[[Document], F], subject: Callable[[Document], str]
) -> tuple[list[F], list[Violation]]:
    facts, unreadable = [], []
    for document in documents:
        try:
            facts.append(read(document))
        except UnreadableError as error:
            unreadable.append(Violation(Rule.UNREADABLE, subject(document), str(error)))
    return facts, unreadable
