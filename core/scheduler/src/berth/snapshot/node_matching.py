"""Which nodes a node selector allows, for all nodes at once.

Source: component-helpers scheduling/corev1/nodeaffinity (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping

import numpy as np

from berth.objects.label_selector import InvalidSelectorError, Requirement, check_requirement
from berth.objects.node import Node
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.objects.steps import Steps, at_once
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

NAME_FIELD = "metadata.name"
IN_A_STEP = 64
"""So many terms are one step, and so many requirements of a term."""


def check_term(term: NodeSelectorTerm) -> None:
    """Refuse a term that upstream cannot parse.

    Raises: InvalidSelectorError.
    """
    for requirement in term.match_expressions:
        check_requirement(requirement, numeric=True)
    for requirement in term.match_fields:
        if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
            raise InvalidSelectorError(f"field {requirement.key} takes In or NotIn with one value")


def parses(term: NodeSelectorTerm) -> bool:
    """Whether upstream can parse the term."""
    try:
        check_term(term)
    except InvalidSelectorError:
        return False
    return True


def matching_nodes(nodes: Snapshot, selector: NodeSelector) -> Steps[Mask]:
    """Where one of the selector's terms holds, in steps; terms that do not parse hold nowhere.

    Shapes: result bool (n,).
    """
    mask = np.zeros(len(nodes), dtype=bool)
    for number, term in enumerate(selector.node_selector_terms, 1):
        mask |= yield from matching_term(nodes, term)
        if mask.all():
            break
        if number % IN_A_STEP == 0:
            yield
    return mask


def matching_term(nodes: Snapshot, term: NodeSelectorTerm) -> Steps[Mask]:
    """Where every requirement of the term holds, in steps; an empty term holds nowhere.

    Shapes: result bool (n,).
    """
    if term.empty or not parses(term):
        return np.zeros(len(nodes), dtype=bool)
    mask = yield from meeting(nodes, term.match_expressions)
    for requirement in term.match_fields:
        mask &= _matching_field(nodes, requirement)
    return mask


def meeting(nodes: Snapshot, requirements: Iterable[Requirement]) -> Steps[Mask]:
    """Where the nodes' labels meet all of these, which parse, in steps.

    Shapes: result bool (n,).
    """
    mask = np.ones(len(nodes), dtype=bool)
    for number, requirement in enumerate(requirements, 1):
        mask &= nodes.label(requirement.key).matching(requirement, len(nodes))
        if not mask.any():
            break
        if number % IN_A_STEP == 0:
            yield
    return mask


def matching_labels(nodes: Snapshot, labels: Mapping[str, str]) -> Mask:
    """Where the node has all of these labels.

    Shapes: result bool (n,).
    """
    return at_once(meeting(nodes, (Requirement(key, "In", (value,)) for key, value in labels.items())))


def _matching_field(nodes: Snapshot, requirement: Requirement) -> Mask:
    wanted = requirement.values[0]
    if requirement.key != NAME_FIELD:
        return np.full(len(nodes), requirement.matches_value(""))
    mask = np.full(len(nodes), requirement.operator == "NotIn")
    row = nodes.row_of.get(wanted)
    if row is not None:
        mask[row] = not mask[row]
    return mask


def node_matches(node: Node, selector: NodeSelector) -> bool:
    """Whether one node is allowed.

    Raises: InvalidSelectorError where no term matches and some term does not parse.
    """
    failure: InvalidSelectorError | None = None
    for term in selector.node_selector_terms:
        if term.empty:
            continue
        try:
            check_term(term)
        except InvalidSelectorError as error:
            failure = error
            continue
        if node_matches_term(node, term):
            return True
    if failure is not None:
        raise failure
    return False


def node_matches_term(node: Node, term: NodeSelectorTerm) -> bool:
    """Whether one node meets every requirement of a term that parses."""
    fields = {NAME_FIELD: node.metadata.name}
    return all(r.matches(node.metadata.labels) for r in term.match_expressions) and all(
        r.matches_value(fields.get(r.key, "")) for r in term.match_fields
    )
