"""A scheduler starts on an API server that lacks newer kinds, and says what it does without."""

import json
import logging

import pytest

from berth.client import resources
from berth.client.connections.connection import Response
from berth.client.errors import NotSentError
from berth.scheduler.watching.server_kinds import NEWER, ServerKinds, server_kinds
from tests.failures.reporting import reports
from tests.unit.scheduler_at_work import eventually, node, scheduling

DEVICES = (resources.RESOURCE_CLAIMS, resources.RESOURCE_SLICES, resources.DEVICE_CLASSES)
UNSERVED = (*DEVICES, resources.POD_GROUPS)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "none"}]},
}


class Server:
    """What an API server of some version answers, by path; 404 for all other paths."""

    def __init__(self, *kinds):
        self.answers = {}
        for kind in kinds:
            served = self.answers.setdefault(kind.root, {"resources": []})
            served["resources"].append({"name": kind.plural})

    async def request(self, method, path, *, timeout_seconds=None):
        assert ("GET", True) == (method, timeout_seconds > 0)
        if path not in self.answers:
            return Response(404, b"{}")
        return Response(200, json.dumps(self.answers[path]).encode())


@pytest.mark.parametrize(
    ("kinds", "absent"),
    [
        (NEWER, frozenset()),
        ((), frozenset(NEWER)),
        (DEVICES, frozenset(NEWER) - frozenset(DEVICES)),
        # The group's version is served, but without the one kind.
        (DEVICES[1:], frozenset(NEWER) - frozenset(DEVICES[1:])),
    ],
)
async def test_what_is_absent(kinds, absent):
    """A kind is absent where its group's version does not list it."""
    assert ServerKinds(absent) == await server_kinds(Server(*kinds))


@pytest.mark.parametrize(
    ("kind", "versions", "best"),
    [
        (resources.POD_GROUPS, ("v1beta1",), "v1beta1"),
        (resources.POD_GROUPS, ("v1alpha2", "v1beta1"), "v1beta1"),
        (resources.DEVICE_TAINT_RULES, ("v1alpha3",), "v1alpha3"),
        (resources.DEVICE_TAINT_RULES, ("v1alpha3", "v1beta2", "v1"), "v1"),
    ],
)
async def test_the_version_that_is_served(kind, versions, best):
    """A kind is read in the best version that the server has; 1.36, 1.37 and 1.38 differ in these."""
    others = [each for each in NEWER if each != kind]
    found = await server_kinds(Server(*others, *(kind._replace(version=version) for version in versions)))

    assert (frozenset(), best) == (found.absent, found.served(kind).version)


class Refusing:
    """A server that gives the same poor answer to everything."""

    def __init__(self, answer):
        self.answer = answer

    async def request(self, *_, timeout_seconds):
        assert timeout_seconds > 0
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        NotSentError("connection refused"),
        Response(403, b"{}"),
        Response(500, b""),
        Response(200, b"<html>"),
        Response(200, b"[]"),
    ],
    ids=["away", "forbidden", "failing", "no JSON", "no object"],
)
async def test_a_kind_that_cannot_be_asked_about_is_watched(answer, caplog):
    """Without a proper answer no kind is taken for absent, nor for one of another version."""
    with caplog.at_level(logging.INFO):
        assert ServerKinds() == await server_kinds(Refusing(answer))

    assert "" == caplog.text


def pods_of(sandbox):
    """The pods as the API server has them."""
    return [entry.decode() for entry in sandbox.store.collection("pods").entries()]


@reports("kinds-not-served", log="`The API server does not serve`, with each kind and what is off without it")
async def test_pods_are_scheduled_without_the_newer_kinds(tmp_path, caplog):
    """On a server without them a scheduler gets ready and binds pods; one line says what is off."""
    kubeconfig = tmp_path / "kubeconfig"
    gates = {"GenericWorkload": True}
    async with scheduling(kubeconfig, node("node"), POD, unserved=UNSERVED, gates=gates) as (sandbox, _):
        await eventually(lambda: any("nodeName" in pod["spec"] for pod in pods_of(sandbox)))

    (line,) = (line for line in caplog.messages if "does not serve" in line)
    assert line == (
        "The API server does not serve kinds=resource.k8s.io/v1 "
        "(deviceclasses, resourceclaims, resourceslices): "
        "pods with resource claims wait; scheduling.k8s.io/v1alpha2 (podgroups): no pod is in a pod group"
    )


async def test_a_pod_with_claims_waits_without_their_kind(tmp_path):
    """It is kept out of the queue of those to try, and other pods are bound."""
    claiming = POD | {
        "metadata": {"name": "claiming", "namespace": "default"},
        "spec": POD["spec"] | {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
    }
    documents = (node("node"), claiming, POD)
    async with scheduling(tmp_path / "kubeconfig", *documents, unserved=DEVICES) as (sandbox, core):
        await eventually(lambda: any("nodeName" in pod["spec"] for pod in pods_of(sandbox)))
        await eventually(lambda: core.queue.sizes() == (0, 0, 0, 1))
        waiting = core.queue.record("default", "claiming")

    assert "DynamicResources" == waiting.gating_plugin
