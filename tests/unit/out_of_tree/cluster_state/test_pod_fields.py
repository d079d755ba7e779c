"""Reading the fields that a plugin named out of the API server's bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.out_of_tree.cluster_state.pod_fields import PodFields


def pod(**changes):
    document = {
        "metadata": {"name": "p", "annotations": {"a/b": "1"}, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for part in parents:
            place = place[int(part) if part.isdigit() else part]
        place[last] = value
    return msgspec.json.encode(document)


@pytest.mark.parametrize(
    ("paths", "change", "differs"),
    [
        pytest.param((), {"spec__containers": []}, False, id="nothing matters"),
        pytest.param(("",), {"metadata__name": "q"}, True, id="the whole pod matters"),
        pytest.param(("/metadata/labels/app",), {"metadata__labels": {"app": "y"}}, True, id="the field"),
        pytest.param(("/metadata/labels/app",), {"metadata__name": "q"}, False, id="another field"),
        pytest.param(("/metadata/labels/app",), {"metadata__labels": {}}, True, id="the field is gone"),
        pytest.param(("/metadata/labels/app",), {"metadata__labels": {"b": ""}}, True, id="another came"),
        pytest.param(
            ("/metadata/annotations/a~1b",), {"metadata__annotations": {"a/b": "2"}}, True, id="a/b"
        ),
        pytest.param(("/spec/overhead",), {"spec__overhead": {"cpu": "1"}}, True, id="was not there"),
        pytest.param(
            ("/spec/containers/*/resources",), {"spec__containers__0__image": "i"}, False, id="beside it"
        ),
        pytest.param(
            ("/spec/containers/*/resources",), {"spec__containers__0__resources": {}}, True, id="in each"
        ),
        pytest.param(
            ("/spec/containers/*/resources",),
            {"spec__containers": [{"resources": {"requests": {"cpu": "1"}}}] * 2},
            True,
            id="one more",
        ),
        pytest.param(("/spec/containers/0/name",), {"spec__containers__0__name": "d"}, True, id="by number"),
        pytest.param(("/spec/containers/1/name",), {"spec__containers__0__name": "d"}, False, id="beyond"),
        pytest.param(
            ("/spec", "/spec/containers/*/name"), {"spec__hostNetwork": True}, True, id="whole and part"
        ),
        pytest.param(("/metadata/name/x",), {"metadata__name": "q"}, True, id="part of a text"),
    ],
)
def test_fields(paths, change, differs):
    """Two pods are equal for a plugin exactly if the fields that it named are."""
    fields = PodFields(paths)

    assert differs == (fields.of(pod()) != fields.of(pod(**change)))
    assert fields.of(pod()) == fields.of(pod())


LEAVES = st.none() | st.integers(0, 1) | st.just("x")
PARTS = st.lists(st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2), max_size=2)
PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": LEAVES | st.dictionaries(st.sampled_from(("a/b", "b")), LEAVES),
        "spec": LEAVES | st.fixed_dictionaries({}, optional={"containers": LEAVES | PARTS, "other": LEAVES}),
    },
)


def picked(document):
    """The same fields by a second way: what is at `/metadata/a~1b` and `/spec/containers/*/a`."""

    def below(value, part):
        return value.get(part, "absent") if isinstance(value, dict) else ("not a map", value)

    containers = below(below(document, "spec"), "containers")
    each = [below(c, "a") for c in containers] if isinstance(containers, list) else containers
    return below(below(document, "metadata"), "a/b"), each


@given(PODS, PODS)
def test_fields_of_any_shape(one, other):
    """Whatever shapes pods have, the fields are equal exactly if what stands there is."""
    fields = PodFields(("/metadata/a~1b", "/spec/containers/*/a"))
    equal = fields.of(msgspec.json.encode(one)) == fields.of(msgspec.json.encode(other))

    assert equal == (picked(one) == picked(other))
