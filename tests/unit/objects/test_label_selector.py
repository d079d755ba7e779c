"""Label selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.objects.label_selector import (
    EVERYTHING,
    NOTHING,
    InvalidSelectorError,
    LabelSelector,
    Requirement,
    check_requirement,
    compile_selector,
    from_labels,
    is_label_value,
    is_qualified_name,
    parse_int,
)

LABELS = {"a": "1"}


def expressions(*requirements):
    return LabelSelector(match_expressions=tuple(Requirement(*r) for r in requirements))


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        (LabelSelector(), True),
        (LabelSelector({"a": "1"}), True),
        (LabelSelector({"a": "2"}), False),
        (LabelSelector({"a": "1", "b": "1"}), False),
        (expressions(("a", "In", ("1",))), True),
        (expressions(("a", "In", ("2", "3"))), False),
        (expressions(("b", "In", ("1",))), False),
        (expressions(("b", "NotIn", ("x",))), True),
        (expressions(("a", "NotIn", ("1",))), False),
        (expressions(("b", "DoesNotExist")), True),
        (expressions(("a", "DoesNotExist")), False),
        (expressions(("a", "Exists")), True),
        (expressions(("a", "Exists"), ("b", "Exists")), False),
    ],
)
def test_matching(selector, matches):
    assert matches is compile_selector(selector).matches(LABELS)


def test_asking_nothing_is_not_matching_nothing():
    assert (True, False) == (EVERYTHING.empty, NOTHING.empty)
    assert EVERYTHING == compile_selector(LabelSelector())
    assert NOTHING == compile_selector(None)


@pytest.mark.parametrize(
    "requirement",
    [
        ("a", "In", ()),
        ("a", "NotIn", ()),
        ("a", "Exists", ("1",)),
        ("a", "DoesNotExist", ("1",)),
        ("a", "Gt", ("1",)),
        ("a", "Like", ("1",)),
        ("a", "", ()),
        ("", "Exists"),
        ("-a", "Exists"),
        ("a/b/c", "Exists"),
        ("/a", "Exists"),
        ("A.example/x", "Exists"),
        ("a" * 64, "Exists"),
        ("a", "In", ("not valid!",)),
        ("a", "In", ("x" * 64,)),
    ],
)
def test_what_does_not_parse(requirement):
    with pytest.raises(InvalidSelectorError):
        compile_selector(expressions(requirement))


@pytest.mark.parametrize("labels", [{"-a": "1"}, {"a": "not valid!"}])
def test_labels_that_do_not_parse(labels):
    with pytest.raises(InvalidSelectorError):
        compile_selector(LabelSelector(labels))


@pytest.mark.parametrize(
    ("operator", "values", "parses"),
    [("Gt", ("5",), True), ("Lt", ("-5",), True), ("Gt", (), False), ("Gt", ("1", "2"), False)]
    + [("Lt", (text,), False) for text in ("x", "", "1.5", "9223372036854775808")],
)
def test_comparisons_parse_where_numbers_are_allowed(operator, values, parses):
    requirement = Requirement("a", operator, values)
    if parses:
        # A negative number is no label value, which upstream asks of it all the same.
        if values[0].startswith("-"):
            with pytest.raises(InvalidSelectorError):
                check_requirement(requirement, numeric=True)
        else:
            check_requirement(requirement, numeric=True)
    else:
        with pytest.raises(InvalidSelectorError):
            check_requirement(requirement, numeric=True)


@pytest.mark.parametrize(
    ("operator", "bound", "value", "matches"),
    [
        ("Gt", "0", "1", True),
        ("Lt", "1", "1", False),
        ("Gt", "0", None, False),
        ("Gt", "0", "many", False),
        ("Lt", "10", "9", True),
        ("Gt", "9", "10", True),
    ],
)
def test_comparisons(operator, bound, value, matches):
    assert matches is Requirement("a", operator, (bound,)).matches_value(value)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("0" * 5000 + "1", 1),
        ("9" * 5000, None),
        ("", None),
        ("1_000", None),
        (" 1", None),
        ("1\n", None),
        (None, None),
    ],
)
def test_numbers_as_go_reads_them(text, number):
    assert number == parse_int(text)


REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from("ab"),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from("123"), min_size=1, max_size=3).map(tuple),
)
SOME_LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"))


@given(st.lists(REQUIREMENTS, max_size=4), st.randoms())
def test_selectors_that_ask_the_same_are_equal(requirements, chance):
    """Whatever the order and however often something is said."""
    shuffled = [*requirements, *requirements[:1]]
    chance.shuffle(shuffled)
    first, second = (
        compile_selector(LabelSelector(match_expressions=tuple(some))) for some in (requirements, shuffled)
    )

    assert first == second
    assert hash(first) == hash(second)


@given(SOME_LABELS, st.lists(REQUIREMENTS, max_size=3), SOME_LABELS)
def test_a_selector_is_the_conjunction_of_its_parts(equal, requirements, labels):
    selector = compile_selector(LabelSelector(equal, tuple(requirements)))
    parts = all(labels.get(key) == value for key, value in equal.items())

    assert (parts and all(r.matches(labels) for r in requirements)) is selector.matches(labels)
    assert selector == from_labels(equal).and_also(tuple(requirements))


@pytest.mark.parametrize("name", ["a", "a.b-c_d", "example.com/a", "a" * 63, "x.y/" + "a" * 63])
def test_keys(name):
    assert is_qualified_name(name)


@pytest.mark.parametrize("value", ["", "a", "A.b-c_9", "1"])
def test_values(value):
    assert is_label_value(value)
