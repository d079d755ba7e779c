"""Claims are stored as an API server stores them: each request with its mode and count."""

import pytest

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
GPU = {"deviceClassName": "gpu"}


def stored(server, form, template):
    """The first request of a claim, or of a template of claims, with that form."""
    spec = {"devices": {"requests": [{"name": "r", **form}]}}
    path, body = (TEMPLATES, {"spec": spec}) if template else (CLAIMS, spec)
    status, created = server.post(path, {"metadata": {"name": "c"}, "spec": body})
    assert 201 == status, created
    spec = created["spec"]["spec"] if template else created["spec"]
    return spec["devices"]["requests"][0]


@pytest.mark.parametrize("template", [False, True])
@pytest.mark.parametrize(
    ("given", "filled_in"),
    [
        ({}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 3}, {"allocationMode": "ExactCount", "count": 3}),
        ({"allocationMode": "ExactCount"}, {"allocationMode": "ExactCount", "count": 1}),
        ({"allocationMode": "All"}, {"allocationMode": "All"}),
        (
            {"tolerations": [{"key": "k"}]},
            {
                "tolerations": [{"key": "k", "operator": "Equal"}],
                "allocationMode": "ExactCount",
                "count": 1,
            },
        ),
    ],
)
def test_a_request_has_its_defaults(server, given, filled_in, template):
    """One device exactly, unless the request says otherwise; alternatives as well."""
    alternatives = [{"name": "a", **GPU, **given}, {"name": "b", **GPU}]

    assert {**GPU, **filled_in} == stored(server, {"exactly": {**GPU, **given}}, template)["exactly"]
    server.delete(f"{TEMPLATES if template else CLAIMS}/c")
    first, second = stored(server, {"firstAvailable": alternatives}, template)["firstAvailable"]
    assert {"name": "a", **GPU, **filled_in} == first
    assert {"name": "b", **GPU, "allocationMode": "ExactCount", "count": 1} == second
