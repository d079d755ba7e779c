import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.sandbox import schemas
from berth.sandbox.patches.json_patch import PatchError, json_patch, merge_patch
from berth.sandbox.patches.strategic import strategic_merge

POD = schemas.root("io.k8s.api.core.v1.Pod")
NODE = schemas.root("io.k8s.api.core.v1.Node")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=6,
)
MAPS = st.dictionaries(st.text("ab", min_size=1, max_size=2), VALUES, max_size=3)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target, patch, expected):
    """RFC 7386's own examples."""
    assert expected == merge_patch(target, patch)


@given(target=MAPS, patch=MAPS)
def test_merge_patch_twice(target, patch):
    """Merging the same patch again changes nothing."""
    once = merge_patch(target, patch)

    assert once == merge_patch(once, patch)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": 0}], {"a": 0}),
        ([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}),
        ([{"op": "test", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
        ([{"op": "add", "path": "/x~1y", "value": 1}], {"a": [1, 2], "x/y": 1}),
    ],
)
def test_json_patch(operations, expected):
    """Each operation does what RFC 6902 says."""
    assert expected == json_patch({"a": [1, 2]}, operations)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/x"},
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "test", "path": "/a/0", "value": 5},
        {"op": "jump", "path": "/a"},
        {"path": "/a"},
    ],
)
def test_json_patch_refused(operation):
    """An operation that cannot be done is refused."""
    with pytest.raises(PatchError):
        json_patch({"a": [1, 2]}, [operation])


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param(
            [{"name": "a", "image": "1"}, {"name": "b"}],
            [{"name": "a", "image": "2"}],
            [{"name": "a", "image": "2"}, {"name": "b"}],
            id="item found by its merge key",
        ),
        pytest.param(
            [{"name": "a"}], [{"name": "b"}], [{"name": "a"}, {"name": "b"}], id="new item appended"
        ),
        pytest.param(
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a", "$patch": "delete"}],
            [{"name": "b"}],
            id="item deleted",
        ),
        pytest.param(
            [{"name": "a"}], [{"$patch": "replace"}, {"name": "c"}], [{"name": "c"}], id="list replaced"
        ),
    ],
)
def test_strategic_lists(target, patch, expected):
    """Containers are merged by name."""
    patched = strategic_merge({"spec": {"containers": target}}, {"spec": {"containers": patch}}, POD)

    assert {"spec": {"containers": expected}} == patched


def test_strategic_atomic_list():
    """A list without a merge strategy is replaced: tolerations."""
    target = {"spec": {"tolerations": [{"key": "a"}]}}

    patched = strategic_merge(target, {"spec": {"tolerations": [{"key": "b"}]}}, POD)

    assert {"spec": {"tolerations": [{"key": "b"}]}} == patched


def test_strategic_conditions():
    """A status patch changes the condition of its type and keeps the others."""
    target = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other"}]}}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}

    patched = strategic_merge(target, patch, POD)

    assert [{"type": "Ready", "status": "False"}, {"type": "Other"}] == patched["status"]["conditions"]


def test_strategic_order():
    """$setElementOrder sorts the items it names."""
    target = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}

    patched = strategic_merge(target, patch, POD)

    assert ["b", "a"] == [container["name"] for container in patched["spec"]["containers"]]


def test_strategic_primitives():
    """Finalizers merge as a set, and leave by $deleteFromPrimitiveList."""
    target = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}

    assert ["b", "c"] == strategic_merge(target, patch, NODE)["metadata"]["finalizers"]


def test_strategic_retain_keys():
    """$retainKeys drops what it does not name."""
    target = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {
        "spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}
    }

    volumes = strategic_merge(target, patch, POD)["spec"]["volumes"]

    assert [{"name": "v", "hostPath": {"path": "/"}}] == volumes


def test_strategic_without_key():
    """An item without its merge key is refused."""
    with pytest.raises(PatchError, match="does not contain declared merge key"):
        strategic_merge({}, {"spec": {"containers": [{"image": "x"}]}}, POD)
