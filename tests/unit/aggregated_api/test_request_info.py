"""Which object a request is about."""

import pytest

from berth.aggregated_api.request_info import ResourceAttributes, is_name, resource_of

ROOT = "/apis/explain.berth.dev/v1alpha1"


def attributes(verb, **more):
    return ResourceAttributes(verb, "explain.berth.dev", "v1alpha1", **{"resource": "podexplanations"} | more)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", f"{ROOT}/namespaces/a/podexplanations/p", attributes("get", namespace="a", name="p")),
        ("GET", f"{ROOT}/namespaces/a/podexplanations", attributes("list", namespace="a")),
        ("GET", f"{ROOT}/podexplanations/", attributes("list")),
        ("POST", f"{ROOT}/namespaces/a/podexplanations", attributes("create", namespace="a")),
        ("DELETE", f"{ROOT}/podexplanations", attributes("deletecollection")),
        ("DELETE", f"{ROOT}/podexplanations/p", attributes("delete", name="p")),
        ("GET", f"{ROOT}/namespaces/a", attributes("get", resource="namespaces", name="a")),
        (
            "PUT",
            f"{ROOT}/namespaces/a/podexplanations/p/status",
            attributes("update", subresource="status", namespace="a", name="p"),
        ),
        ("GET", ROOT, None),
        ("GET", "/apis", None),
        ("GET", "/metrics", None),
    ],
)
def test_attributes(method, path, expected):
    """Verb, group, resource, namespace and name, as an API server authorizes them."""
    assert expected == resource_of(method, path)


def test_a_watch():
    assert "watch" == resource_of("GET", f"{ROOT}/podexplanations", watch=True).verb


def test_refusal():
    """The words of an API server."""
    expected = (
        'podexplanations.explain.berth.dev "p" is forbidden: User "jane" cannot get resource '
        '"podexplanations" in API group "explain.berth.dev" in the namespace "a"'
    )

    assert expected == attributes("get", namespace="a", name="p").refusal("jane")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("p0", True),
        ("a.b-c", True),
        ("", False),
        ("-a", False),
        ("a\nb", False),
        ("A", False),
        ("a" * 254, False),
    ],
)
def test_names(text, good):
    """What no pod may be called is no name."""
    assert good is is_name(text)
