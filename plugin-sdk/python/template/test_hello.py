"""Hello, asked as a scheduler asks it."""

import json

from hello import Hello

from berth_sdk import Action, ClusterEvent
from berth_sdk.testing import make_node, make_pod, running

BLUE = {"team": "blue"}
NODES = (make_node("blue", labels=BLUE), make_node("red", labels={"team": "red"}), make_node("free"))


async def test_teams():
    """Pods stay off other teams' nodes and prefer their own."""
    async with running(Hello(), *NODES) as host:
        rejections, scores = await host.filter_score(make_pod("p", labels=BLUE))

    assert list(rejections.nodes) == ["red"]
    assert scores == {"blue": 100, "free": 0}


async def test_label():
    """The label is an argument."""
    async with running(Hello(), *NODES, arguments={"label": "tenant"}) as host:
        rejections = await host.filter(make_pod("p", labels=BLUE))

    assert rejections.nodes == {}


async def test_hint():
    """A node that joins the team is worth another attempt."""
    joins = [
        ClusterEvent(
            "Node", Action.UPDATE_NODE_LABEL, new=json.dumps(make_node("n", labels={"team": team})).encode()
        )
        for team in ("red", "blue")
    ]

    async with running(Hello(), *NODES) as host:
        table = await host.hints([make_pod("p", labels=BLUE)], *joins)

    assert table == [[False], [True]]
