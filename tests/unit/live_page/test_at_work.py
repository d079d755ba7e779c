"""A scheduler at work with its live page: what the page gets is what happened."""

import asyncio

import aiohttp
import pytest

from berth.aggregated_api.kinds import ROOT
from berth.sandbox.access.identity import service_account
from berth.sandbox.free_port import free_port
from berth.scheduler.process_options import Serving
from berth.snapshot.node_tree import ZONE
from tests.suite import PATIENCE_SECONDS
from tests.unit.explaining_at_work import JANE, RBAC, ask, explaining
from tests.unit.scheduler_at_work import eventually, node, scheduling

PAGE = ("/live", "/live/*")


def pod(name, cpu="1"):
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


class Viewer:
    """Looks at the page of the scheduler on that port."""

    def __init__(self, client, port):
        self._client = client
        self._url = f"https://127.0.0.1:{port}"

    async def get(self, path):
        async with self._client.get(f"{self._url}{path}", ssl=False) as answer:
            return answer.status, await answer.json() if "json" in answer.content_type else None

    async def until(self, claim):
        """The state, once the claim holds of it; the page is collected once a second."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                _, state = await self.get("/live/state.json")
                if claim(state):
                    return state
                await asyncio.sleep(0.05)


@pytest.fixture
async def seen(tmp_path):
    """The states of a page on which two pods are bound and one is not."""
    port = free_port()
    serving = Serving(port=port, always_allowed=PAGE)
    nodes = (node("n0", **{ZONE: "west"}), node("n1", **{ZONE: "east"}))
    async with (
        scheduling(tmp_path / "kubeconfig", *nodes, live_page=True, serving=serving) as (sandbox, core),
        aiohttp.ClientSession() as client,
    ):
        sandbox.load([pod("a"), pod("b"), pod("large", cpu="100")])
        await eventually(lambda: core.cache.pod_count() == 2 and core.queue.sizes().unschedulable == 1)
        viewer = Viewer(client, port)
        state = await viewer.until(lambda state: len(state["decisions"]) == 3)
        yield state, (await viewer.get("/live/nodes.json"))[1]


async def test_a_page_of_what_happened(seen):
    """Nodes, queue, decisions, who waits and why, and the steps of an attempt."""
    state, nodes = seen

    assert ["n0", "n1"] == sorted(nodes["names"])
    assert ["east", "west"] == nodes["groupings"][0]["values"]
    assert (True, 2, 2) == (state["leads"], state["nodeCount"], state["podCount"])
    assert ("cpu", 8000, 2000) == tuple(
        state["resources"][0][key] for key in ("name", "allocatable", "requested")
    )
    assert {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0} == state["queue"]
    [waiting] = state["pending"]
    assert ("large", "unschedulable", ["NodeResourcesFit"]) == (
        waiting["name"],
        waiting["result"],
        waiting["rejectedBy"],
    )
    assert waiting["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert {"a", "b", "large"} == {decision["name"] for decision in state["decisions"]}
    assert "scheduling cycle" == state["attempts"][0]["steps"][0][0]


async def test_no_page_unless_it_is_asked_for(tmp_path):
    """Nothing counts for it, and its paths are none."""
    port = free_port()
    serving = Serving(port=port, always_allowed=("/*",))
    async with (
        scheduling(tmp_path / "kubeconfig", node("n0"), serving=serving),
        aiohttp.ClientSession() as client,
    ):
        viewer = Viewer(client, port)

        assert (404, None) == await viewer.get("/live")
        assert (404, None) == await viewer.get("/live/state.json")


def viewers(user):
    """The binding of the role of those who may look at the page."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "live"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "berth-live-viewer"},
        "subjects": [{"kind": "User", "name": user.name}],
    }


async def test_who_is_bound_to_the_role_may_look(tmp_path):
    """And no other user, whatever else that one may."""
    robot = service_account("team-a", "robot")
    async with explaining(tmp_path, ["first"], viewers(JANE), live_page=True) as cluster:
        url, issue = f"https://127.0.0.1:{cluster.ports[0]}", cluster.sandbox.access.issue
        for path in (
            "/live/state.json",
            "/live/nodes.json",
            f"{ROOT}/nodeexplanations/n1",
        ):
            assert 200 == (await ask(url, path, issue(JANE)))[0]
            code, status = await ask(url, path, issue(robot))
            assert (403, "Forbidden") == (code, status["reason"])


async def test_a_standby_shows_the_leaders_page(tmp_path):
    """Each address shows who leads, and the pod that the leader tried."""
    waiting = {**pod("large", cpu="100"), "metadata": {"name": "large", "namespace": "team-a"}}
    waiting["spec"]["schedulerName"] = "first"
    async with explaining(tmp_path, ["first", "first"], waiting, viewers(JANE), live_page=True) as cluster:
        token = cluster.sandbox.access.issue(JANE)
        for port in cluster.ports:
            async with asyncio.timeout(PATIENCE_SECONDS):
                state = {}
                while not state.get("pending"):
                    code, state = await ask(f"https://127.0.0.1:{port}", "/live/state.json", token)
                    await asyncio.sleep(0.05)

            assert (200, True) == (code, state["leads"])
            assert ["large"] == [one["name"] for one in state["pending"]]
