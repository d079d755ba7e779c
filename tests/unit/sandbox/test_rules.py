"""CEL rules of custom resources, as an API server asks them."""

import pytest

from tests.unit.sandbox.custom_resources.test_crd import CRDS, definition

THINGS = "/apis/example.com/v1/namespaces/default/gpus"
SPEC = {
    "type": "object",
    "required": ["low"],
    "x-kubernetes-validations": [
        {"rule": "self.low <= self.high", "message": "low must not be above high"},
        {
            "rule": "!has(self.wait) || duration(self.wait) > duration('1s')",
            "messageExpression": "'wait is ' + self.wait + ', give it more than 1s'",
            "fieldPath": ".wait",
        },
        {"rule": "has(self.kind) == has(oldSelf.kind)", "message": "kind cannot be added or removed"},
    ],
    "properties": {
        "low": {"type": "integer"},
        "high": {"type": "integer", "default": 10},
        "wait": {"type": "string"},
        "kind": {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "kind is immutable", "reason": "FieldValueForbidden"}
            ],
        },
        "namespace": {"type": "string"},
        "rows": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                "x-kubernetes-validations": [
                    {"rule": "!has(oldSelf.size) || self.size >= oldSelf.size", "message": "may not shrink"}
                ],
            },
        },
        "tags": {
            "type": "object",
            "additionalProperties": {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self.startsWith('t-')"}],
            },
        },
    },
}


def described(spec):
    schema = {"type": "object", "properties": {"spec": spec}}
    given = definition()
    given["spec"]["versions"] = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    ]
    return given


@pytest.fixture
def things(server):
    """A server with a custom resource that has rules."""
    status, answer = server.post(CRDS, described(SPEC))
    assert 201 == status, answer
    return server


def thing(**spec):
    return {"kind": "Gpu", "apiVersion": "example.com/v1", "metadata": {"name": "g"}, "spec": spec}


def causes(answer):
    return [(one["field"], one["message"]) for one in answer["details"]["causes"]]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param(
            {"low": 11}, "spec", 'Invalid value: "object": low must not be above high', id="default"
        ),
        pytest.param(
            {"low": 1, "wait": "1s"},
            "spec.wait",
            'Invalid value: "object": wait is 1s, give it more than 1s',
            id="message made by an expression",
        ),
        pytest.param(
            {"low": 1, "tags": {"a": "x"}},
            "spec.tags[a]",
            "Invalid value: \"string\": failed rule: self.startsWith('t-')",
            id="no message",
        ),
        pytest.param(
            {"low": 1, "wait": "soon"},
            "spec.wait",
            'Invalid value: "object": time: invalid duration "soon" evaluating rule: '
            "!has(self.wait) || duration(self.wait) > duration('1s')",
            id="a rule that fails to be evaluated",
        ),
    ],
)
def test_turned_down(things, spec, field, message):
    """What a rule turns down is refused with the rule's words, on the field it names."""
    status, answer = things.post(THINGS, thing(**spec))

    assert (422, [(field, message)]) == (status, causes(answer))


def test_not_asked(things):
    """Rules are not asked of a document that lacks what they rely on; the answer says so."""
    _, answer = things.post(THINGS, thing(high=1))

    found = causes(answer)
    assert ("spec.low", "Required value") == found[0]
    assert "some validation rules were not checked" in found[1][1]


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        pytest.param({"kind": "b"}, ["spec.kind"], id="immutable"),
        pytest.param({"kind": None}, ["spec"], id="removed"),
        pytest.param({"rows": [{"name": "x", "size": 1}]}, ["spec.rows[0]"], id="found by its key"),
        pytest.param({"rows": [{"name": "y", "size": 1}]}, [], id="a new row has no past"),
        pytest.param({"low": 2}, [], id="nothing against it"),
    ],
)
def test_transition(things, change, refused):
    """A rule about the old value is asked where the old value is known."""
    things.post(THINGS, thing(low=1, kind="a", rows=[{"name": "x", "size": 2}]))
    status, answer = things.patch(f"{THINGS}/g", {"spec": change})

    assert refused == ([field for field, _ in causes(answer)] if status == 422 else [])


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self.lwo > 1", "undefined field 'lwo'"),
        ("self.rows.all(r, r.nam != '')", "undefined field 'nam'"),
        ("self.rows.all(r, s.name != '')", "undeclared reference to 's'"),
        ("self.low >", "unexpected end of the expression"),
        ("nope(self.low)", "undeclared reference to 'nope'"),
        ("self.namespace == 'x'", "undefined field 'namespace'"),
    ],
)
def test_bad_rule(server, rule, problem):
    """A definition whose rule cannot work is refused, with the reason."""
    status, answer = server.post(CRDS, described({**SPEC, "x-kubernetes-validations": [{"rule": rule}]}))

    assert 422 == status
    assert f"compilation failed: {problem}" in causes(answer)[0][1]


def test_escaped(server):
    """Fields named like CEL's own words are called by their escaped names."""
    rule = {"rule": "self.__namespace__ != 'kube-system'", "message": "not there"}
    server.post(CRDS, described({**SPEC, "x-kubernetes-validations": [rule]}))

    assert 422 == server.post(THINGS, thing(low=1, namespace="kube-system"))[0]
    assert 201 == server.post(THINGS, thing(low=1, namespace="mine"))[0]


def test_bad_default(server):
    """A default that its own schema does not allow is refused with the definition."""
    wrong = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 1, "default": 2}}}
    status, answer = server.post(CRDS, described(wrong))

    assert (422, True) == (status, causes(answer)[0][0].endswith("properties[n].default"))
