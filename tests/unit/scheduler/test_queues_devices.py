"""Devices that are all in use, taken back for the queue that they are promised to, through an API server."""

import tempfile
from contextlib import asynccontextmanager

import yaml

from berth_queues import Queues
from berth_sdk.serving import Server
from tests.unit.scheduler.test_devices_end_to_end import (
    DRA,
    claim,
    device_class,
    give_back,
    places,
    pod,
    slice_of,
    stored,
)
from tests.unit.scheduler.test_queues import KINDS, NAME
from tests.unit.scheduler_at_work import eventually, node, scheduling

DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
FOLLOWED = ("Queue", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass")


def queue(name, parent="", **spec):
    """A queue of the namespace of its name."""
    return {
        "apiVersion": "queues.berth.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent, "namespaces": [name], **spec} if parent else spec,
    }


def of_team(team, document, **spec):
    """The object in a team's namespace; a pod ends at once when it is deleted."""
    document["metadata"]["namespace"] = team
    if document["kind"] == "Pod":
        document["spec"] |= {"terminationGracePeriodSeconds": 0, **spec}
    return document


@asynccontextmanager
async def at_work(tmp_path, *documents):
    """Two nodes with a device each, of which each team is promised one, and a scheduler with the plugin."""
    quota = {DEVICES: "1"}
    teams = ("borrower", "owner")
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in teams]
    objects = [
        yaml.safe_load((KINDS / "queues.yaml").read_text(encoding="utf-8")),
        *namespaces,
        *(queue(name, "all", quota=quota) for name in teams),
        queue("all", capacity="Quota"),
        device_class(),
        *(each for i in range(2) for each in (node(f"n{i}"), slice_of(f"n{i}", "a"))),
    ]
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        server = Server(Queues(FOLLOWED), f"unix:{folder}/p.sock")
        await server.start()
        try:
            async with scheduling(
                tmp_path / "kubeconfig",
                *objects,
                *documents,
                sidecars={NAME: f"unix:{folder}/p.sock"},
                without=("DefaultPreemption",),
            ) as (sandbox, _):
                yield sandbox
        finally:
            await server.stop(grace_seconds=0)


async def test_taken_back(tmp_path):
    """One that borrows is evicted though its device comes free only once its claim is given back."""
    claims = [of_team("borrower", claim(f"c{i}", "a")) for i in range(2)]
    claims.append(of_team("owner", claim("c", "a")))
    async with at_work(tmp_path, *claims) as sandbox:
        for i in range(2):
            sandbox.load([of_team("borrower", pod(f"b{i}", f"c{i}"))])
            await eventually(lambda i=i: f"b{i}" in places(sandbox))
        lent = places(sandbox)

        sandbox.load([of_team("owner", pod("o", "c"))])
        await eventually(lambda: len(places(sandbox)) == 1)
        (kept,) = places(sandbox)
        gone = "c1" if kept == "b0" else "c0"
        await give_back(tmp_path, stored(sandbox, "resourceclaims")[gone])
        await eventually(lambda: "o" in places(sandbox))

        assert places(sandbox)["o"] == lent["b1" if kept == "b0" else "b0"]
        assert DRA == stored(sandbox, "resourceclaims")["c"]["apiVersion"]
