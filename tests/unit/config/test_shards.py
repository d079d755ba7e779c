"""Shards behind a configuration: every profile in one of them, and no node open to two of them."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.config import load
from berth.config.command_line import parse_flags, read_settings
from berth.config.errors import ShardListError
from berth.config.out_of_tree.plugin_list import list_beside
from berth.config.shards import Shard, check_shards, disjoint, shards_beside
from tests.unit.config.files import file

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def expression(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def required(*terms):
    """An added affinity; a term is a list of expressions."""
    shown = [{"matchExpressions": list(term)} for term in terms]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": shown}}


def profile(name, affinity=None, **plugins):
    args = [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}] if affinity else []
    return {"schedulerName": name, "pluginConfig": args, "plugins": plugins}


def pool(*values):
    return required([expression("pool", "In", *values)])


def shard_list(shards, **fields):
    document = {"apiVersion": "berth.dev/v1alpha1", "kind": "ShardList", "shards": shards, **fields}
    return f"---\n{yaml.safe_dump(document)}"


def problems(profiles, shards, **configuration):
    """What is wrong with these shards of these profiles, without the file's name."""
    text = file({"profiles": profiles, **configuration})
    try:
        check_shards([Shard(name, tuple(names)) for name, names in shards.items()], load(text), "f")
    except ShardListError as error:
        return [message.removeprefix("f: ShardList: ") for message in error.messages]
    return []


def test_read_behind_a_configuration():
    """A ShardList is read beside a PluginList in the same file, in whatever order they stand."""
    shards = shard_list([{"name": "gpu", "profiles": ["gpu"]}, {"name": "rest", "profiles": ["a", "b"]}])
    plugins = "---\napiVersion: berth.dev/v1alpha1\nkind: PluginList\nplugins: []\n"
    expected = (Shard("gpu", ("gpu",)), Shard("rest", ("a", "b")))

    assert [expected, expected] == [
        shards_beside(file() + rest, "f") for rest in (shards + plugins, plugins + shards)
    ]
    assert () == list_beside(file() + shards, "f").plugins


def test_none_without_a_list():
    assert () == shards_beside(file(), "f")
    assert [] == problems([profile("a")], {})


@pytest.mark.parametrize(
    ("rest", "error"),
    [
        (shard_list([]), "f: ShardList: shards: must be a list"),
        (shard_list([{"name": "a"}]), "f: ShardList: Object missing required field `profiles`"),
        (
            shard_list([{"name": "a", "profiles": [1]}]),
            "f: ShardList: Expected `str`, got `int` - at `$.shards",
        ),
        (shard_list([], more=1), "f: ShardList: Object contains unknown field `more`"),
        (shard_list([{"name": "a", "profiles": []}], apiVersion="berth.dev/v2"), "f: apiVersion: must be"),
        (shard_list([]) + shard_list([]), "f: 2 documents of kind ShardList"),
        (shard_list([]) + "shards: []\n", "f: "),
    ],
)
def test_malformed(rest, error):
    with pytest.raises(ShardListError) as raised:
        shards_beside(file() + rest, "f")

    assert raised.value.messages[0].startswith(error)


def test_every_profile_is_in_one_shard():
    profiles = [profile("a", pool("a")), profile("b", pool("b")), profile("c", pool("c"))]

    assert [] == problems(profiles, {"one": ["a"], "two": ["b", "c"]})
    assert [
        'shards[1].profiles: profile "a" is in shard one already; keep one',
        'shards[1].profiles: there is no profile "d"; these are: a, b, c',
        'shards: profile "c" is in none; add it to the shard that is to lead it',
    ] == problems(profiles, {"one": ["a"], "two": ["b", "a", "d"]})


def test_names_become_those_of_leases():
    profiles = [profile("a", pool("a")), profile("b", pool("b"))]
    rule = "is no DNS label: lower case letters, digits and '-', at most 63"

    assert [f'shards[0].name: "One" {rule}', f'shards[1].name: "" {rule}'] == problems(
        profiles, {"One": ["a"], "": ["b"]}
    )


def test_a_shard_is_led_by_a_lease():
    (found,) = problems([profile("a")], {"one": ["a"]}, leaderElection={"leaderElect": False})

    assert "each shard is led by a lease: set leaderElection.leaderElect to true" == found


def test_profiles_that_may_share_nodes():
    """The error names both, their shards and the remedy."""
    (found,) = problems([profile("a", pool("x")), profile("b")], {"one": ["a"], "two": ["b"]})

    assert found.startswith(
        'profiles "a" (shard one) and "b" (shard two) may share nodes: put them into one shard'
    )
    assert [] == problems([profile("a", pool("x")), profile("b")], {"one": ["a", "b"]})


@pytest.mark.parametrize(
    ("one", "other", "proven"),
    [
        pytest.param(pool("a"), pool("b", "c"), True, id="other values of one label"),
        pytest.param(pool("a", "b"), pool("b", "c"), False, id="a value in both"),
        pytest.param(
            pool("a"), required([expression("pool", "NotIn", "a", "b")]), True, id="all other values"
        ),
        pytest.param(pool("a", "c"), required([expression("pool", "NotIn", "a")]), False, id="some others"),
        pytest.param(pool("a"), required([expression("pool", "DoesNotExist")]), True, id="without the label"),
        pytest.param(pool("a"), required([expression("pool", "Exists")]), False, id="with the label"),
        pytest.param(pool("a"), required([expression("zone", "In", "b")]), False, id="another label"),
        pytest.param(
            required([expression("zone", "In", "z"), expression("pool", "In", "a")]),
            pool("b"),
            True,
            id="and",
        ),
        pytest.param(
            required([expression("pool", "In", "a")], [expression("zone", "In", "z")]),
            pool("b"),
            False,
            id="or",
        ),
        pytest.param(None, pool("a"), False, id="every node"),
        pytest.param(
            {"preferredDuringSchedulingIgnoredDuringExecution": []}, pool("a"), False, id="only preferred"
        ),
    ],
)
def test_disjoint(one, other, proven):
    """Only what both require of one label proves that no node is open to both, in either order."""
    first, second = load(file({"profiles": [profile("a", one), profile("b", other)]})).profiles

    assert (proven, proven) == (disjoint(first, second), disjoint(second, first))


def test_an_affinity_that_no_filter_reads_proves_nothing():
    off = profile(
        "a",
        pool("a"),
        filter={"disabled": [{"name": "NodeAffinity"}]},
        multiPoint={"disabled": [{"name": "NodeAffinity"}], "enabled": []},
    )
    first, second = load(file({"profiles": [off, profile("b", pool("b"))]})).profiles

    assert not disjoint(first, second)


@st.composite
def terms(draw):
    """Terms over two labels with two values each."""
    one = st.tuples(
        st.sampled_from("kl"), st.sampled_from(OPERATORS), st.sets(st.sampled_from("ab"), min_size=1)
    )
    drawn = draw(st.lists(st.lists(one, min_size=1, max_size=2), min_size=1, max_size=2))
    return [
        [expression(k, op, *(sorted(values) if op in ("In", "NotIn") else ())) for k, op, values in term]
        for term in drawn
    ]


def meets(labels, term):
    """Whether a node with these labels meets all expressions."""
    for e in term:
        value, values = labels.get(e["key"]), e.get("values", [])
        held = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[e["operator"]]
        if not held:
            return False
    return True


@given(one=terms(), other=terms())
def test_what_is_proven_holds_for_every_node(one, other):
    """No labels meet both of two affinities that were found to be disjoint."""
    first, second = load(
        file({"profiles": [profile("a", required(*one)), profile("b", required(*other))]})
    ).profiles
    nodes = [
        {key: value for key, value in (("k", k), ("l", other_value)) if value is not None}
        for k in (None, "a", "b", "c")
        for other_value in (None, "a", "b", "c")
    ]
    shared = [n for n in nodes if any(meets(n, t) for t in one) and any(meets(n, t) for t in other)]

    assert not (disjoint(first, second) and shared)


def test_a_scheduler_does_not_start_with_wrong_shards():
    text = file({"profiles": [profile("a"), profile("b")]}) + shard_list(
        [{"name": "one", "profiles": ["a"]}, {"name": "two", "profiles": ["b"]}]
    )
    with pytest.raises(ShardListError, match="may share nodes"):
        read_settings(parse_flags(["--config=f"]), lambda _: text.encode())
    right = file({"profiles": [profile("a", pool("a")), profile("b", pool("b"))]}) + shard_list(
        [{"name": "one", "profiles": ["a"]}, {"name": "two", "profiles": ["b"]}]
    )

    found = read_settings(parse_flags(["--config=f"]), lambda _: right.encode())
    assert (Shard("one", ("a",)), Shard("two", ("b",))) == found.shards
