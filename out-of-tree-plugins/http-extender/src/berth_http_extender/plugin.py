"""The http-extender plugin: questions of the plugin protocol, put to an extender in its own words."""

import asyncio
import logging
from typing import Any

import numpy as np

from berth_http_extender import wire
from berth_http_extender.client import Client
from berth_http_extender.settings import DEFAULT_SECONDS, SCHEMA, Settings, settings_of
from berth_sdk import (
    SKIP,
    Action,
    Answer,
    Code,
    EventInterest,
    Node,
    Nodes,
    Normalization,
    Plugin,
    Pod,
    Reason,
    Scores,
    Verdicts,
    current_call,
)
from berth_sdk.scheduling import numbered

POINTS_OF_ONE = 10
"""An extender scores up to 10, a plugin up to 100."""
MOST = 100
LEFT_OUT = Reason("node(s) were left out by the extender", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
ANYTHING = (Action.ADD, Action.UPDATE, Action.DELETE)
KINDS = ("Pod", "Node", "persistentvolumeclaims.v1", "persistentvolumes.v1")
"""What an extender may have waited for: it says which nodes, not what would change its mind."""

log = logging.getLogger(__name__)


class HttpExtender(Plugin):
    """Ask one extender for each profile that uses the plugin."""

    name = "http-extender"
    version = "0.1.0"
    events = tuple(EventInterest(kind, ANYTHING) for kind in KINDS)
    wants_pods = False
    score_needs_feasible = True
    arguments_schema = SCHEMA
    wanted_deadline_seconds = DEFAULT_SECONDS + 1

    def __init__(self, name: str = name) -> None:
        self.name = name
        self._clients: dict[str, Client] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def configure(self, arguments: dict[str, Any], profile: str) -> None:
        """Ask the extender of these arguments from now on."""
        settings = settings_of(arguments)
        self.profile_removed(profile)
        self._clients[profile] = Client(settings)

    def profile_removed(self, profile: str) -> None:
        """Close the connections of the profile."""
        if client := self._clients.pop(profile, None):
            closing = asyncio.get_running_loop().create_task(client.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def stopped(self) -> None:
        """Close all connections."""
        for profile in list(self._clients):
            self.profile_removed(profile)
        await asyncio.gather(*self._closing)

    def pre_filter(self, pod: Pod) -> Answer:
        """Skip pods that are none of the extender's business."""
        settings = self._client().settings
        return None if settings.filter_verb and interested(settings, pod) else SKIP

    async def filter_nodes(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Answer what the extender says of each node.

        Raises: ExtenderError.
        """
        client, asked = self._client(), list(nodes.asked())
        by_name = client.settings.names_only
        body = wire.question(pod, (node for _, node in asked), names_only=by_name)
        said = wire.verdict(await client.ask(client.settings.filter_verb, body), names_only=by_name)
        if strangers := said.passed - {node.name for _, node in asked}:
            raise wire.ExtenderError(
                f'extender "{client.settings.base}" claims a filtered node "{min(strangers)}" '
                "which is not found in the input node list"
            )
        codes, table = np.zeros(len(nodes), np.uint8), dict[Reason, int]()
        for row, node in asked:
            if node.name not in said.passed:
                codes[row] = numbered(table, reason(said, node.name))
        return Verdicts(codes, tuple(table))

    async def score_nodes(self, pod: Pod, nodes: Nodes) -> Scores | None:
        """Answer the extender's priorities; one that fails adds nothing."""
        client, asked = self._client(), list(nodes.asked())
        settings = client.settings
        if not (settings.prioritize_verb and interested(settings, pod)):
            return None
        body = wire.question(pod, (node for _, node in asked), names_only=settings.names_only)
        try:
            said = wire.priorities(await client.ask(settings.prioritize_verb, body))
        except wire.ExtenderError as error:
            log.warning("no scores extender=%s error=%r", settings.base, str(error))
            return None
        points = np.zeros(len(nodes), np.int64)
        for row, node in asked:
            points[row] = min(max(said.get(node.name, 0) * POINTS_OF_ONE, 0), MOST)
        return Scores(points, Normalization.NONE)

    async def bind(self, pod: Pod, node: Node, annotations: dict[str, str]) -> Answer:
        """Have the extender write the binding.

        Raises: ExtenderError: also where it would lose annotations that others want written with it.
        """
        client = self._client()
        if not (client.settings.bind_verb and interested(client.settings, pod)):
            return SKIP
        if annotations:
            raise wire.ExtenderError(
                f"an extender's binding can't carry annotations: {', '.join(annotations)}"
            )
        wire.accepted(await client.tell(client.settings.bind_verb, wire.binding(current_call().key, node)))
        return None

    def _client(self) -> Client:
        return self._clients[current_call().profile]


def interested(settings: Settings, pod: Pod) -> bool:
    """Return whether a container names a managed resource; without such resources every pod counts."""
    resources = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    named = {name for each in resources for name in (*each.requests, *each.limits)}
    return not settings.managed or not settings.managed.isdisjoint(named)


def reason(said: wire.Verdict, name: str) -> Reason:
    """Return why the extender turns the node down."""
    if text := said.unresolvable.get(name):
        return Reason(text, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    text = said.failed.get(name)
    return Reason(text) if text else LEFT_OUT
