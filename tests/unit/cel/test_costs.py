"""What evaluations cost: cel-go's figures, worked out by hand from its rules."""

from importlib import import_module

import pytest

from berth.cel import CELError, CostLimitError, metered_program, program
from berth.cel.metering import COST_LIMIT, WORK_FOR_COST, Evaluation
from berth.snapshot.bounded_cache import ENTRY_BYTES, BoundedCache

VARIABLES = {
    "device": {"driver": "gpu.example", "attributes": {"d": {"model": "a100", "on": True}}},
    "words": ["twelve chars", "b"],
    "name": "twelve chars",
}


@pytest.mark.parametrize(
    ("cost", "expression"),
    [
        pytest.param(0, "true", id="a constant"),
        pytest.param(1, "device", id="a variable"),
        pytest.param(4, 'device.attributes["d"].model', id="a path of three steps"),
        pytest.param(2, "words[0]", id="an index"),
        pytest.param(2 + 2, 'device.driver == "gpu.example"', id="equality goes through the shorter text"),
        pytest.param(4 + 1, "device.attributes['d'].on == true", id="scalars compare for one"),
        pytest.param(0, "1 in [1, 2, 3]", id="membership among constants"),
        pytest.param(0, "[1, 2, 3]", id="a list of constants"),
        pytest.param(10 + 1, "[name]", id="a list"),
        pytest.param(30 + 1, "{'a': name}", id="a map"),
        pytest.param(0, "true && false || true", id="logic"),
        pytest.param(1, "has(device.attributes.d)", id="the path of a presence test"),
        pytest.param(1 + 2 * 2, "name.matches('^t[a-z]+')", id="a pattern, text times pattern"),
        pytest.param(1 + 2, "name.startsWith('a')", id="a prefix goes through the text"),
        pytest.param(1 + 3, "name.replace('a', 'b')", id="replacing goes through the text twice"),
        pytest.param(1 + 2, "name + ''", id="texts put together"),
        pytest.param(1, "quantity('40Gi')", id="a quantity"),
        pytest.param(1, "size('abc')", id="a size"),
        pytest.param(3 * (3 + 2) + 1, "[1, 2, 3].all(x, x > 0)", id="all"),
        pytest.param(2 * (4 + 2) + 1, "[1, 2, 3].exists(x, x == 2)", id="exists ends at the first"),
        pytest.param(2 * (12 + 2) + 1, "[1, 2].map(x, x + 1)", id="map"),
        pytest.param(3 * 2 + 13 + 1, "[1, 2, 3].filter(x, x == 2)", id="filter counts what it keeps"),
        pytest.param(1 + 2, "cel.bind(x, name, x == 'a' ? 1 : 0)", id="bind"),
    ],
)
def test_an_evaluation_costs_what_cel_go_counts(cost, expression):
    assert cost == metered_program(expression).cost(VARIABLES)


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


def nested(levels, body):
    for level in range(levels):
        body = f"{TEN}.all(x{level}, {body})"
    return body


def test_an_evaluation_ends_where_it_goes_over_the_limit():
    with pytest.raises(CostLimitError, match=r"^operation cancelled: actual cost limit exceeded$"):
        program(nested(7, "true"))({})


def test_no_operator_makes_up_for_the_limit():
    """An error on one side of `||` gives way to the other; the end of the evaluation does not."""
    with pytest.raises(CostLimitError):
        program(f"{nested(7, 'true')} || true")({})


def test_an_evaluation_right_at_the_limit_ends_well():
    expression = nested(3, "x0 == x0")
    cost = metered_program(expression).cost({})

    assert program(expression, cost_limit=cost)({}) is True
    with pytest.raises(CostLimitError):
        program(expression, cost_limit=cost - 1)({})


def test_work_that_upstream_counts_as_nothing_is_bounded_too():
    run = Evaluation({}, 0, COST_LIMIT)

    run.spend(0, WORK_FOR_COST * COST_LIMIT)
    with pytest.raises(CostLimitError):
        run.spend(0, 1)


def test_depth_is_what_cel_go_parses():
    """250 levels are evaluated, the next is refused; chains of `&&` are no depth."""
    assert program("(" * 249 + "true" + ")" * 249)({}) is True
    assert program("[" * 248 + "true" + "]" * 248 + " != []")({}) is True
    assert program("&&".join(["true"] * 4000))({}) is True
    for deep in ("(" * 300 + "true" + ")" * 300, "+".join("1" * 300), "a" + ".b" * 300):
        with pytest.raises(CELError, match="expression recursion limit exceeded: 250"):
            program(deep)


def test_an_expression_has_at_most_as_many_characters_as_asked_for():
    with pytest.raises(CELError, match="expression code point size exceeds limit: size: 11, limit 10"):
        program("true||true" + " ", max_length=10)


def test_the_cache_of_programs_is_bounded_by_the_length_of_texts(monkeypatch):
    """Of many expressions those asked for last stay compiled, as many as the length of their texts allows."""
    programs = import_module("berth.cel.program")
    monkeypatch.setattr(programs, "_programs", BoundedCache(1000))
    first, *_, last = (metered_program(f"{number:0100} == 1") for number in range(100))

    assert last is metered_program(f"{99:0100} == 1")
    assert first is not metered_program(f"{0:0100} == 1")
    assert len(programs._programs) == 1000 // (105 + ENTRY_BYTES)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("!" * 400 + "true", True),
        ("!" * 401 + "true", False),
        ("-" * 400 + "(1)", 1),
        ("-" * 401 + "(1)", -1),
    ],
    ids=["even", "odd", "even, of a number", "odd, of a number"],
)
def test_signs_cancel_each_other_out(expression, value):
    """cel-go's parser keeps one of an odd number: however many there are, they are no depth and cost one."""
    assert value == program(expression)({})
    assert metered_program(expression).cost({}) <= 1
