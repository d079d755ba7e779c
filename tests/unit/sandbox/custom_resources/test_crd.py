import pytest

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GPUS = "/apis/example.com/v1/namespaces/default/gpus"


def definition(**spec):
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["milli"],
                "properties": {
                    "milli": {"type": "integer", "minimum": 1},
                    "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    columns = [{"name": "Milli", "type": "integer", "jsonPath": ".spec.milli"}]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    old = {**version, "name": "v1beta1", "storage": False}
    names = {"plural": "gpus", "kind": "Gpu", "shortNames": ["gp"]}
    given = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version, old]}
    return {"metadata": {"name": "gpus.example.com"}, "spec": {**given, **spec}}


@pytest.fixture
def gpus(server):
    """A server that serves the custom resource."""
    assert server.post(CRDS, definition())[0] == 201
    return server


def gpu(**spec):
    return {"kind": "Gpu", "apiVersion": "example.com/v1", "metadata": {"name": "g"}, "spec": spec}


def test_established(gpus):
    """A definition is established at once, and discovered."""
    _, found = gpus.get(f"{CRDS}/gpus.example.com")
    _, listed = gpus.get("/apis/example.com/v1")

    conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
    assert {"NamesAccepted": "True", "Established": "True"} == conditions
    assert ["gpus", "gpus/status"] == [one["name"] for one in listed["resources"]]


def test_defaulted_and_pruned(gpus):
    """Defaults are filled in, unknown fields dropped, except where they are preserved."""
    _, made = gpus.post(GPUS, gpu(milli=5, colour="red", free={"x": 1}))

    assert {"milli": 5, "mode": "a", "free": {"x": 1}} == made["spec"]
    assert ['unknown field "spec.colour"'] == gpus.request.warnings


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.milli", "FieldValueRequired"),
        ({"milli": 0}, "spec.milli", "FieldValueInvalid"),
        ({"milli": "5"}, "spec.milli", "FieldValueTypeInvalid"),
        ({"milli": 5, "mode": "c"}, "spec.mode", "FieldValueNotSupported"),
    ],
)
def test_invalid(gpus, spec, field, reason):
    """What the schema does not allow is refused, with the field named."""
    status, answer = gpus.post(GPUS, gpu(**spec))

    cause = answer["details"]["causes"][0]
    assert (422, field, reason) == (status, cause["field"], cause["reason"])


def test_versions(gpus):
    """An object is served in every version, and stored once."""
    gpus.post(GPUS, gpu(milli=5))
    _, old = gpus.get(GPUS.replace("v1", "v1beta1") + "/g")
    _, listed = gpus.get(GPUS.replace("v1", "v1beta1"))

    assert "example.com/v1beta1" == old["apiVersion"]
    assert ["example.com/v1beta1"] == [item["apiVersion"] for item in listed["items"]]


def test_status(gpus):
    """Status is written apart, and does not count as a generation."""
    gpus.post(GPUS, {**gpu(milli=5), "status": {"x": 1}})
    _, made = gpus.get(f"{GPUS}/g")
    _, updated = gpus.patch(f"{GPUS}/g/status", {"status": {"x": 2}})

    assert ("status" in made, updated["status"], updated["metadata"]["generation"]) == (False, {"x": 2}, 1)


def test_columns(gpus):
    """A definition's printer columns make the table."""
    gpus.post(GPUS, gpu(milli=5))
    _, table = gpus.get(GPUS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    assert ["g", 5] == table["rows"][0]["cells"]


def test_withdrawn(gpus):
    """With the definition its objects go, and nothing is served any more."""
    gpus.post(GPUS, gpu(milli=5))
    gpus.delete(f"{CRDS}/gpus.example.com")

    assert 404 == gpus.get(GPUS)[0]
    gpus.post(CRDS, definition())
    assert [] == gpus.get(GPUS)[1]["items"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"scope": "Universe"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"group": "other.com"}, "metadata.name"),
    ],
)
def test_bad_definition(server, spec, field):
    """A definition that cannot be served is refused."""
    status, answer = server.post(CRDS, definition(**spec))

    assert (422, field) == (status, answer["details"]["causes"][0]["field"])
