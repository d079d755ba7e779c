"""A node selector over all nodes says what it says of each one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.objects.label_selector import InvalidSelectorError, Requirement
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.objects.steps import at_once
from berth.snapshot.node_matching import matching_labels, matching_nodes, node_matches
from berth.testing.builders import make_node
from berth.testing.clusters import table

NODES = [
    make_node("n1", labels={"zone": "a", "gen": "9"}),
    make_node("n2", labels={"zone": "b", "gen": "10"}),
    make_node("n3", labels={"gen": "old"}),
]
TABLE = table(NODES)


def term(*expressions, fields=()):
    return NodeSelectorTerm(
        tuple(Requirement(*e) for e in expressions), tuple(Requirement(*f) for f in fields)
    )


def matching(*terms):
    mask = at_once(matching_nodes(TABLE, NodeSelector(terms)))
    return [name for name, holds in zip(TABLE.names, mask, strict=True) if holds]


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([], []),
        ([term()], []),
        ([term(("zone", "In", ("a",)))], ["n1"]),
        ([term(("zone", "In", ("a", "b", "c")))], ["n1", "n2"]),
        ([term(("zone", "NotIn", ("a",)))], ["n2", "n3"]),
        ([term(("zone", "Exists"))], ["n1", "n2"]),
        ([term(("zone", "DoesNotExist"))], ["n3"]),
        ([term(("gen", "Gt", ("9",)))], ["n2"]),
        ([term(("gen", "Lt", ("10",)))], ["n1"]),
        ([term(("zone", "In", ("a",)), ("gen", "Gt", ("9",)))], []),
        ([term(("zone", "In", ("a",))), term(("gen", "Gt", ("9",)))], ["n1", "n2"]),
        ([term(fields=[("metadata.name", "In", ("n2",))])], ["n2"]),
        ([term(fields=[("metadata.name", "NotIn", ("n2",))])], ["n1", "n3"]),
        ([term(fields=[("metadata.name", "In", ("gone",))])], []),
        ([term(fields=[("metadata.uid", "In", ("x",))])], []),
        ([term(fields=[("metadata.uid", "NotIn", ("x",))])], ["n1", "n2", "n3"]),
        ([term(fields=[("metadata.name", "In", ("n1", "n2"))])], []),
        ([term(("zone", "Like", ("a",))), term(("zone", "In", ("b",)))], ["n2"]),
        ([term(("no such key", "DoesNotExist"))], []),
    ],
)
def test_terms(terms, names):
    assert names == matching(*terms)


def test_a_term_that_does_not_parse_is_an_error_for_one_node_where_no_other_matches():
    bad, good = term(("zone", "Like", ("a",))), term(("zone", "In", ("a",)))

    assert node_matches(NODES[0], NodeSelector((bad, good)))
    with pytest.raises(InvalidSelectorError):
        node_matches(NODES[1], NodeSelector((bad, good)))
    assert not node_matches(NODES[1], NodeSelector((good, term())))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({}, [True, True, True]),
        ({"zone": "a"}, [True, False, False]),
        ({"zone": "a", "gen": "1"}, [False] * 3),
    ],
)
def test_labels(labels, names):
    assert names == matching_labels(TABLE, labels).tolist()


KEYS, VALUES = st.sampled_from(["zone", "gen", "disk"]), st.sampled_from(["a", "b", "9", "10", "old"])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1).map(tuple)),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(Requirement, KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from([("5",), ("9",)])),
)
TERMS = st.builds(NodeSelectorTerm, st.lists(REQUIREMENTS, max_size=3).map(tuple))


@given(
    st.lists(st.dictionaries(KEYS, VALUES), min_size=1, max_size=5),
    st.builds(NodeSelector, st.lists(TERMS, max_size=3).map(tuple)),
)
def test_all_at_once_is_one_after_the_other(labels, selector):
    nodes = [make_node(f"n{i}", labels=some) for i, some in enumerate(labels)]

    assert [node_matches(n, selector) for n in nodes] == at_once(
        matching_nodes(table(nodes), selector)
    ).tolist()
