"""Moments as the live page shows them, filled by hand, and a secure port that serves them."""

import asyncio
import socket
from contextlib import asynccontextmanager

import msgspec
import numpy as np

from berth.live_page.collecting import Collected, LastAttempt, LiveState, SidecarSummary
from berth.live_page.history import SERIES, Points
from berth.live_page.node_map import Grouping, MappedNodes, ResourceShare
from berth.live_page.pages import LivePages
from berth.live_page.recent_attempts import AttemptTimeline, Step
from berth.serving.access import allow_all
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.serving_certificate import SelfMade
from berth.testing.handles import ManualClock


def collected(n=60, *, text="ok", version="one", leads=True, cordoned=(1,)):
    """A moment with n nodes in three zones; `text` stands wherever a cluster's users choose what stands."""
    names = [f"node-{i:04}" for i in range(n)]
    zones = Grouping(
        "zone", "topology.kubernetes.io/zone", ["a", "b", text], (np.arange(n) % 3).astype("<u2").tobytes()
    )
    flags = np.zeros(n, dtype=bool)
    flags[list(cordoned)] = True
    rising = np.arange(300, dtype="<u4").tobytes()
    waiting = LastAttempt("shop", text, text, "unschedulable", "", text, [text], 3, 1.7e9, 2.5, 0)
    placed = LastAttempt("shop", "web-1", "default-scheduler", "scheduled", text, "", [], 1, 1.7e9, 1.25, n)
    state = LiveState(
        leads=leads,
        nodes=version,
        node_count=n,
        pod_count=7 * n,
        resources=[
            ResourceShare("cpu", 4000.0 * n, 1000.0 * n, (np.arange(n) % 101).astype(np.uint8).tobytes()),
            ResourceShare("memory", 64.0 * 2**30 * n, 2.0**30 * n, bytes([150] * n)),
            ResourceShare("pods", 110.0 * n, 7.0 * n, bytes([6] * n)),
            ResourceShare("example.com/gpu", 8.0, 2.0, bytes([25, *([255] * (n - 1))])),
        ],
        cordoned=np.packbits(flags).tobytes(),
        queue={"active": 1, "backoff": 2, "unschedulable": 3, "gated": 4},
        history=Points(300, dict.fromkeys(SERIES, rising)),
        pending=[waiting],
        decisions=[placed, waiting],
        plugins=[SidecarSummary(text, text, "ready", "closed", False, [text], text, 12, 900, 4000)],
        attempts=[
            AttemptTimeline(
                f"shop/{text}",
                "default-scheduler",
                "scheduled",
                "node-0001",
                "ab" * 16,
                1.7e9,
                1500,
                2000,
                [Step("scheduling cycle", 0, 0, 900), Step(text, 1, 100, 300)],
                0,
            )
        ],
    )
    return Collected(state, msgspec.json.encode(MappedNodes(names, [zones])))


class Scene:
    """What the pages collect: one moment after the other; `clock` says when the next is due."""

    def __init__(self, *moments):
        self.moments = list(moments)
        self.clock = ManualClock()
        self.collections = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.failure = None
        self.pages = LivePages(self._collect, self.clock).pages()

    async def _collect(self):
        self.collections += 1
        moment = self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]
        await self.go_on.wait()
        if self.failure is not None:
            raise self.failure
        return moment


async def _nothing():
    """Do nothing."""


@asynccontextmanager
async def served(pages, review=allow_all):
    """Those pages behind a secure port; gives its address."""
    endpoints = Endpoints(lambda _names: b"", _nothing, dict, pages=pages)
    listener = socket.create_server(("127.0.0.1", 0))
    server = await SecureServer.start(listener, SelfMade(), endpoints, review=review)
    try:
        yield f"https://127.0.0.1:{server.port}"
    finally:
        await server.close()
