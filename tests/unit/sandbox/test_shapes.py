"""The sandbox has the API of the release that it is asked for."""

import pytest

from berth.sandbox.api import SandboxApi
from tests.unit.sandbox.conftest import PODS, Server

GANG = {"schedulingPolicy": {"gang": {"minCount": 3}}}
GROUPS = "/apis/scheduling.k8s.io/{}/namespaces/default/podgroups"
BETA = GROUPS.format("v1beta1")


def server_of(minor):
    """A server of that release of Kubernetes 1."""
    server = Server()
    server.api = SandboxApi(server.store, lambda: server.now, release=(1, minor))
    return server


@pytest.mark.parametrize(
    ("minor", "groups", "trees", "rules"),
    [
        (36, "v1alpha2", set(), "v1beta2"),
        (37, "v1beta1", {"v1alpha3"}, "v1"),
        (38, "v1beta1", {"v1alpha3"}, "v1"),
    ],
)
def test_what_is_served(minor, groups, trees, rules):
    """Version, PodGroups, Workloads, CompositePodGroups and DeviceTaintRules are those of the release."""
    server = server_of(minor)
    _, version = server.get("/version")
    _, found = server.get("/apis")
    versions = {each["name"]: {one["version"] for one in each["versions"]} for each in found["groups"]}
    _, grouped = server.get(f"/apis/scheduling.k8s.io/{groups}")
    _, devices = server.get(f"/apis/resource.k8s.io/{rules}")

    assert f"v1.{minor}.0+berth-sandbox" == version["gitVersion"]
    assert {"v1", groups} | trees == versions["scheduling.k8s.io"]
    assert {"podgroups", "podgroups/status", "workloads"} == {each["name"] for each in grouped["resources"]}
    assert "devicetaintrules" in {each["name"] for each in devices["resources"]}


def test_a_group_of_v1beta1():
    """Its disruption mode is an object, and how many pods a gang needs may change."""
    server = server_of(37)
    status, made = server.post(BETA, {"metadata": {"name": "g"}, "spec": GANG})
    fewer = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}

    assert (201, {"single": {}}) == (status, made["spec"]["disruptionMode"])
    assert 200 == server.patch(f"{BETA}/g", fewer)[0]
    status, refused = server.patch(f"{BETA}/g", {"spec": {"disruptionMode": {"single": None, "all": {}}}})
    assert (422, ["spec.disruptionMode"]) == (
        status,
        [each["field"] for each in refused["details"]["causes"]],
    )


@pytest.mark.parametrize("mode", [{}, {"single": {}, "all": {}}])
def test_a_disruption_mode_is_one_of_two(mode):
    """None and both are refused."""
    status, refused = server_of(37).post(
        BETA, {"metadata": {"name": "g"}, "spec": {**GANG, "disruptionMode": mode}}
    )

    assert (422, "spec.disruptionMode") == (status, refused["details"]["causes"][0]["field"])


@pytest.mark.parametrize("minor", [36, 37, 38])
def test_what_a_binding_is_answered_with(minor):
    """From 1.38 on it is the version that the pod has now."""
    server = server_of(minor)
    server.pod("a")
    target = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    status, answer = server.post(f"{PODS}/a/binding", target)
    _, bound = server.get(f"{PODS}/a")

    expected = {} if minor < 38 else {"resourceVersion": bound["metadata"]["resourceVersion"]}
    assert (201, expected) == (status, answer["metadata"])


def test_unknown_paths_in_words():
    """From 1.38 on an unknown path below /apis is answered with a Status."""
    status, answer = server_of(38).get("/apis/none.example.com/v1")

    assert (404, "NotFound") == (status, answer["reason"])
