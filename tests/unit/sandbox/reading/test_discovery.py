import msgspec
import pytest

from berth.sandbox.kinds.resources import built_in
from berth.sandbox.kinds.shapes import SHAPES
from berth.sandbox.reading import openapi_protobuf
from berth.sandbox.request import ReceivedRequest

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_aggregated_and_legacy_agree(server):
    """Both forms of discovery tell the same resources."""
    reported = set()
    for root in ("/api", "/apis"):
        for group in server.get(root, accept=f"{AGGREGATED},application/json")[1]["items"]:
            for version in group["versions"]:
                for one in version["resources"]:
                    kind = one["responseKind"]
                    reported.add((kind["group"], version["version"], one["resource"]))
    legacy = set()
    for group in server.get("/apis")[1]["groups"]:
        for version in group["versions"]:
            for one in server.get(f"/apis/{version['groupVersion']}")[1]["resources"]:
                legacy.add((group["name"], version["version"], one["name"]))
    legacy |= {("", "v1", one["name"]) for one in server.get("/api/v1")[1]["resources"]}

    assert reported == {key for key in legacy if "/" not in key[2]}
    assert {(one.group, one.version, one.plural) for one in built_in(SHAPES[1, 36])} == reported


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/livez/ping"])
def test_health(server, path):
    """Health is answered in plain text."""
    answer = server.api.handle(ReceivedRequest("GET", path, {}, {}))

    assert (200, [b"ok"]) == (answer.status, answer.parts)


def test_unknown_path(server):
    """A path that is nothing is answered 404 in plain text."""
    answer = server.api.handle(ReceivedRequest("GET", "/nope", {}, {}))

    assert (404, [b"404 page not found\n"]) == (answer.status, answer.parts)


def test_version(server):
    """The server presents itself as the release whose schemas it serves."""
    assert "v1.36.0+berth-sandbox" == server.get("/version")[1]["gitVersion"]


def test_openapi_v3(server):
    """Every group has a document; PATCH knows fieldValidation in it; it refers to nothing missing."""
    for path, link in server.get("/openapi/v3")[1]["paths"].items():
        status, document = server.get(link["serverRelativeURL"].partition("?")[0])
        assert 200 == status, path
        patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
        assert all("fieldValidation" in {p["name"] for p in patch["parameters"]} for patch in patches)
        assert references(document) <= set(document["components"]["schemas"])


def test_openapi_v2(server):
    """The older form refers to nothing missing either."""
    status, document = server.get("/openapi/v2")

    assert 200 == status
    assert references(document) <= set(document["definitions"])


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", openapi_protobuf.MEDIA_TYPE),
        (f"{openapi_protobuf.MEDIA_TYPE},application/json", openapi_protobuf.MEDIA_TYPE),
        ("application/json;q=0.9", "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_openapi_v2_has_two_forms(server, accept, media_type):
    """Clients get the first form that they name; kubectl knows the one in protobuf alone."""
    answer = server.api.handle(ReceivedRequest("GET", "/openapi/v2", {}, {"accept": accept}))

    assert (200, media_type) == (answer.status, answer.content_type)


def test_openapi_v2_has_no_other_form(server):
    """A client that names other forms is told so."""
    status, answer = server.call("GET", "/openapi/v2", accept="application/yaml")

    assert (406, "NotAcceptable") == (status, answer["reason"])


def references(document):
    text = msgspec.json.encode(document).decode()
    return {part.partition('"')[0].rpartition("/")[2] for part in text.split('"$ref":"')[1:]}


def test_reviews(server):
    """Everybody may do everything."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    status, answer = server.post(path, {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})

    assert (201, True) == (status, answer["status"]["allowed"])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/api/v1/pods", 405),
        ("GET", "/api/v1/things", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("POST", "/api/v1/namespaces/default/pods/a/log", 404),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
        ("GET", "/api/v1/namespaces/default/pods/a/binding", 405),
    ],
)
def test_declined(server, method, path, status):
    """What is not served is declined with a Status."""
    answer = server.call(method, path)

    assert (status, "Status") == (answer[0], answer[1]["kind"])
