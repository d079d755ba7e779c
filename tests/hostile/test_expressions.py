"""Expressions made to keep a scheduler busy, to fill its memory, or to end it."""

import gc
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cel import CELError, program
from berth.cel import patterns as cel_patterns
from berth.objects.devices.devices import DeviceSpec
from berth.plugins.dynamic_resources.devices import Device, DeviceId, DeviceSelectorError
from tests.hostile.work import calls
from tests.suite import examples

LIMIT = 2_000
# For each unit of cost: ten of work, and a few functions for a unit.
CALLS_FOR_COST = 40
FIFTY = "[" + ",".join(map(str, range(50))) + "]"
VARIABLES = {"name": "a" * 64, "words": ["a" * 64] * 32, "attributes": {"model": "a100"}}


def nested(macro, levels, body):
    for level in range(levels):
        body = f"{FIFTY}.{macro}(x{level}, {body})"
    return body


def repeated(step, times, first, last):
    """`x` bound to `first`, then to `step` so many times, and `last` of it."""
    for _ in range(times):
        last = f"cel.bind(x, {step}, {last})"
    return f"cel.bind(x, {first}, {last})"


SHAPES = {
    "a pattern that backtracks": f"'{'a' * 42}!'.matches('^(a+)+$')",
    "a pattern of many states": nested("map", 2, "words[0].matches('(a?){1000}b' + string(x0))"),
    "a pattern that does not compile, again and again": nested("exists", 3, "'a'.matches('(' + string(x0))"),
    "a large class, another each time": nested("map", 2, "'a'.matches('\\\\pL{50}' + string(x0) + 'b')"),
    "all places of a pattern": nested("map", 3, "words[0].findAll('a*b|a')"),
    "comprehensions in comprehensions": nested("all", 5, "true"),
    "a filter that keeps nothing": nested("filter", 5, "false"),
    "a count of nothing": nested("exists_one", 5, "false"),
    "constants in a comprehension": nested("all", 2, "&&".join(["true"] * 500)),
    "membership in itself": nested("all", 3, f"x0 in {FIFTY}.map(y, y)"),
    "a list that doubles": repeated("x + x", 60, "words", "x.size()"),
    "a text that doubles": repeated("x + x", 60, "name", "x.size()"),
    "a text that grows by replacing": repeated("x.replace('a', 'aaaaaaaaaa')", 60, "name", "x.size()"),
    "a text that grows around nothing": repeated("x.replace('', 'aaaaaaaaaa')", 60, "name", "x.size()"),
    "a text that grows by joining": repeated("[x, x, x].join(x)", 60, "name", "x.size()"),
    "a list that doubles by parts": repeated("[x, x]", 150, "words", "x == x"),
    "a deep list": repeated("[[[[x]]]]", 100, "words", "x == [x]"),
    "sums of doubled lists": repeated("x + x", 30, "[1]", "x.sum()"),
    "sets of doubled lists": repeated("x + x", 12, "words", "sets.equivalent(x, x)"),
    "quantities that double": repeated("x.add(x)", 150, "quantity('9E')", "x.asApproximateFloat() > 1.0"),
    "split texts": nested("map", 4, "name.split('')"),
}


@pytest.mark.parametrize("expression", SHAPES.values(), ids=SHAPES.keys())
def test_work_is_at_most_proportional_to_the_cost_limit(expression):
    evaluate = program(expression, cost_limit=LIMIT)

    def run():
        try:
            evaluate(VARIABLES)
        except CELError:
            return

    assert calls(run) <= CALLS_FOR_COST * LIMIT


@pytest.mark.parametrize("expression", SHAPES.values(), ids=SHAPES.keys())
def test_memory_is_bounded_by_the_cost_limit(expression):
    evaluate = program(expression, cost_limit=100_000)
    gc.collect()
    tracemalloc.start()
    try:
        evaluate(VARIABLES)
    except CELError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert peak < 64 * 2**20


@pytest.mark.parametrize(
    "expression",
    [
        "9" * 5_000,
        "0x" + "f" * 5_000,
        "1e" + "9" * 5_000,
        "1." + "9" * 5_000 + " > 1.0",
        "int('" + "9" * 5_000 + "')",
        "uint('" + "9" * 5_000 + "')",
        "double('" + "9" * 5_000 + "') > 0.0",
        "quantity('" + "9" * 5_000 + "').isInteger()",
        "quantity('1e99999999999').asInteger()",
        "semver('1.2." + "9" * 5_000 + "')",
        "semver('1.2.3-" + "9" * 5_000 + "')",
        "duration('" + "9" * 5_000 + "h')",
        "'\\U00110000'",
        "'\\ud800'",
        "string(double('inf'))",
        "string(1e300 * 1e300)",
        "[1][double('nan')]",
        "[1][double('inf')]",
        "{[1]: 2}",
        "{'a': 1}[[1]]",
        "optional.of({'a': 1})[[1]]",
        "'a'.replace('a', 'b', 9223372036854775807)",
        "'a'.indexOf('a', 9223372036854775807)",
        "-9223372036854775808 / -1",
        "(" * 90_000,
        "[" * 90_000,
        "!" * 90_000,
        "-" * 90_000,
        "a" + ".b" * 40_000,
        "a" + "[a" * 30_000,
        "1" + "+1" * 40_000,
        "true" + "?true:true" * 9_000,
        "'" * 90_000,
        '"""' * 30_000,
        "\\" * 90_000,
        "`" * 90_000,
        "r" * 90_000 + "'",
        "f(" * 30_000,
        "[1].all(x, " * 8_000,
        "{1:" * 30_000,
    ],
    ids=lambda text: text[:20],
)
def test_an_expression_gives_a_value_or_a_celerror(expression):
    outcome = "value"
    try:
        program(expression)({})
    except CELError:
        outcome = "error"

    assert outcome in {"value", "error"}


ATOMS = st.sampled_from(
    [
        *("true", "null", "0", "-1", "9223372036854775807", "2u", "1.5", "1e308", "''", "'aé'", "b'x'", "[]"),
        *(
            "name",
            "words",
            "attributes",
            "attributes.model",
            "missing",
            "x",
            "quantity('1')",
            "duration('1s')",
        ),
        *("optional.none()", "optional.of(1)", "semver('1.2.3')", "{'a': 1}", "[1, 2]", "[[1], ['a']]"),
    ]
)


def _combined(inner):
    return st.one_of(
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["==", "!=", "<", ">=", "+", "-", "*", "/", "%", "in", "&&", "||"]),
            inner,
        ),
        st.builds(
            "{}({})".format, st.sampled_from(["!", "-", "size", "int", "string", "double", "bytes"]), inner
        ),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}[?{}]".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("{}.{}(x, {})".format, inner, st.sampled_from(["all", "exists", "map", "filter"]), inner),
        st.builds("{}.{}(x, y, {})".format, inner, st.sampled_from(["all", "transformList"]), inner),
        st.builds("cel.bind(x, {}, {})".format, inner, inner),
        st.builds(
            "{}.{}({})".format,
            inner,
            st.sampled_from(
                [
                    "contains",
                    "matches",
                    "find",
                    "findAll",
                    "split",
                    "join",
                    "replace",
                    "charAt",
                    "indexOf",
                    "lastIndexOf",
                    "startsWith",
                    "substring",
                    "compareTo",
                    "add",
                    "sub",
                    "orValue",
                    "isGreaterThan",
                ]
            ),
            inner,
        ),
        st.builds(
            "{}.{}()".format,
            inner,
            st.sampled_from(["sum", "min", "max", "isSorted", "trim", "value", "sign"]),
        ),
        st.builds("sets.contains({}, {})".format, inner, inner),
    )


@given(expression=st.recursive(ATOMS, _combined, max_leaves=24))
@settings(max_examples=examples(150), deadline=None)
def test_any_expression_gives_a_value_or_a_celerror_for_bounded_work(expression):
    def run():
        try:
            program(expression, cost_limit=LIMIT)(VARIABLES)
        except CELError:
            return

    run()  # what it takes to compile is not counted

    assert calls(run) <= CALLS_FOR_COST * LIMIT


def test_compiled_patterns_that_are_kept_are_bounded_in_number_and_bytes():
    for number in range(3 * cel_patterns.CACHED):
        cel_patterns.compiled(f"a{number}")

    assert cel_patterns.compiled.cache_info().currsize == cel_patterns.CACHED
    assert cel_patterns.CACHED * cel_patterns.PATTERN_BYTES <= 64 * 2**20


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (nested("all", 5, "true"), "CEL runtime error: operation cancelled: actual cost limit exceeded"),
        ("true" + " " * 10_240, ("CEL compile error: expression code point size exceeds limit: "
                                "size: 10244, limit 10240")),
        ("device" + ".a" * 300, "CEL compile error: expression recursion limit exceeded: 250"),
    ],
)  # fmt: skip
def test_a_device_selector_fails_in_upstreams_words(expression, problem):
    device = Device(DeviceId("driver", "pool", "device"), DeviceSpec(name="device"), None)

    with pytest.raises(DeviceSelectorError) as raised:
        device.matches(expression)

    assert problem == str(raised.value)
