"""A pod's subresource `resize` changes cpu and memory of containers, and nothing else."""

import pytest

from tests.unit.sandbox.conftest import PODS

RESOURCES = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "example.com/gpu": "1"}}


def container(name="c", resources=RESOURCES, **fields):
    return {"name": name, "image": "x:1", "resources": resources, **fields}


@pytest.fixture
def pod(server):
    """A burstable pod with an init container and a sidecar."""
    init = [container("init"), container("sidecar", restartPolicy="Always")]
    return server.pod(containers=[container()], initContainers=init)


def resize(server, *containers, field="containers", **spec):
    return server.patch(f"{PODS}/a/resize", {"spec": {field: list(containers), **spec}}, "strategic-merge")


@pytest.mark.parametrize(("field", "name"), [("containers", "c"), ("initContainers", "sidecar")])
def test_a_resize_changes_resources(server, pod, field, name):
    """Of containers and sidecars; the generation counts it, and all else is dropped in silence."""
    asked = {"name": name, "image": "y:2", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}

    status, resized = resize(server, asked, field=field, nodeName="n1")

    found = next(each for each in resized["spec"][field] if each["name"] == name)
    assert (200, {"cpu": "1500m", "memory": "1Gi"}) == (
        status,
        {key: each for key, each in found["resources"]["requests"].items() if "/" not in key},
    )
    assert ("x:1", None) == (found["image"], resized["spec"].get("nodeName"))
    assert pod["metadata"]["generation"] + 1 == resized["metadata"]["generation"]
    assert resized["spec"] == server.get(f"{PODS}/a/resize")[1]["spec"]


@pytest.mark.parametrize(
    ("field", "asked", "said"),
    [
        (
            "containers",
            {"name": "c", "resources": {"limits": {"example.com/gpu": "2"}}},
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            "containers",
            {"name": "c", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            "only cpu and memory resources are mutable",
        ),
        (
            "containers",
            {"name": "c", "resources": {"limits": {"cpu": None}}},
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
        ),
        ("containers", {"name": "c", "resources": {"requests": {"cpu": "3"}}}, "limit of 2"),
        (
            "initContainers",
            {"name": "init", "resources": {"requests": {"cpu": "3"}}},
            "only cpu and memory resources for sidecar containers are mutable",
        ),
    ],
)
def test_what_a_resize_may_not_change(server, pod, field, asked, said):
    """Other resources, policies, init containers, amounts above the limit; nothing is stored."""
    status, answer = resize(server, asked, field=field)

    assert (422, True) == (status, said in answer["message"]), answer["message"]
    assert pod == server.get(f"{PODS}/a")[1]


def test_the_class_of_service_stays(server):
    """A resize that would make another QoS class of the pod is refused."""
    server.pod(containers=[container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})])

    status, answer = resize(server, {"name": "c", "resources": {"requests": {"cpu": "500m"}}})

    assert 422 == status
    assert "Pod QOS Class may not change as a result of resizing" in answer["message"]


def test_resources_stay_without_the_subresource(server, pod):
    """An update of the pod itself changes no resources."""
    asked = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}}

    assert 422 == server.patch(f"{PODS}/a", asked, "strategic-merge")[0]
    assert pod == server.get(f"{PODS}/a")[1]


def test_a_subresource_is_not_deleted(server, pod):
    """What is for a part of the pod deletes no pod."""
    assert [405, 405] == [server.delete(f"{PODS}/a/{name}")[0] for name in ("resize", "status")]
    assert pod == server.get(f"{PODS}/a")[1]
