"""The http-extender plugin: questions of the plugin protocol, put to an extender in its own words."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.propagate import inject

from berth.config.extenders import DEFAULT_HTTP_TIMEOUT
from berth.out_of_tree.extender import wire
from berth.out_of_tree.extender.client import ExtenderClient
from berth.out_of_tree.extender.errors import ExtenderError
from berth_http_extender.settings import SCHEMA, Settings, settings_of
from berth_sdk import (
    SKIP,
    Action,
    Answer,
    Code,
    ContractError,
    EventInterest,
    Node,
    Nodes,
    Normalization,
    Plugin,
    Pod,
    PodKey,
    Reason,
    Scores,
    Verdicts,
    current_call,
)

POINTS_OF_ONE = 10
"""An extender scores up to 10, a plugin up to 100."""
MOST = 100
LEFT_OUT = Reason("node(s) were left out by the extender", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
ANYTHING = (Action.ADD, Action.UPDATE, Action.DELETE)
KINDS = ("Pod", "Node", "persistentvolumeclaims.v1", "persistentvolumes.v1")
"""What an extender may have waited for: it says which nodes, not what would change its mind."""

log = logging.getLogger(__name__)


class Asking:
    """A profile's extender; has to be made on the running event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._client = ExtenderClient(settings.base, settings.timeout, settings.tls)

    async def ask(self, verb: str, pod: Pod, nodes: Iterable[Node]) -> bytes:
        """Return the reply to a question about nodes. Raises: ExtenderError."""
        if self.settings.names_only:
            body = wire.nodes_body(pod.source, nodes=None, names=[node.name for node in nodes])
        else:
            body = wire.nodes_body(pod.source, nodes=[node.source for node in nodes], names=None)
        return await self._client.ask(verb, body, trace_context())

    async def bind(self, key: PodKey, node: Node) -> bytes:
        """Return the reply to a binding, which is sent once. Raises: ExtenderError."""
        body = wire.bind_body(key.name, key.namespace, key.uid, node.name)
        return await self._client.tell(self.settings.bind_verb, body, trace_context())

    async def close(self) -> None:
        """Close the connections, once what is under way has ended."""
        await self._client.drained()
        await self._client.close()


class HttpExtender(Plugin):
    """Ask one extender for each profile that uses the plugin."""

    name = "http-extender"
    version = "0.2.0"
    events = tuple(EventInterest(kind, ANYTHING) for kind in KINDS)
    wants_pods = False
    score_needs_feasible = True
    arguments_schema = SCHEMA
    wanted_deadline_seconds = DEFAULT_HTTP_TIMEOUT.seconds + 1

    def __init__(self, name: str = name) -> None:
        self.name = name
        self._clients: dict[str, Asking] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def configure(self, arguments: dict[str, Any], profile: str) -> None:
        """Ask the extender of these arguments from now on."""
        settings = settings_of(arguments)
        self.profile_removed(profile)
        self._clients[profile] = Asking(settings)

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

        Raises: ContractError.
        """
        client, asked = self._client(), list(nodes.asked())
        settings = client.settings
        with failing():
            data = await client.ask(settings.filter_verb, pod, (node for _, node in asked))
            said = wire.filter_reply(data, by_name=settings.names_only)
        passed = frozenset(said.names or ())
        if strangers := passed - {node.name for _, node in asked}:
            raise ContractError(
                f'extender "{settings.base}" claims a filtered node "{min(strangers)}" '
                "which is not found in the input node list"
            )
        return nodes.verdicts(lambda _, node: None if node.name in passed else reason(said, node.name))

    async def score_nodes(self, pod: Pod, nodes: Nodes) -> Scores | None:
        """Answer the extender's priorities; one that fails adds nothing."""
        client, asked = self._client(), list(nodes.asked())
        settings = client.settings
        if not (settings.prioritize_verb and interested(settings, pod)):
            return None
        try:
            data = await client.ask(settings.prioritize_verb, pod, (node for _, node in asked))
            said = wire.prioritize_reply(data)
        except ExtenderError as error:
            log.warning("no scores extender=%s err=%s", settings.base, error)
            return None
        points = nodes.scores(lambda _, node: min(max(said.get(node.name, 0) * POINTS_OF_ONE, 0), MOST))
        return Scores(points, Normalization.NONE)

    async def bind(self, pod: Pod, node: Node, annotations: dict[str, str]) -> Answer:
        """Have the extender write the binding.

        Raises: ContractError: also where it would lose annotations that others want written with it.
        """
        client = self._client()
        if not (client.settings.bind_verb and interested(client.settings, pod)):
            return SKIP
        if annotations:
            raise ContractError(f"an extender's binding can't carry annotations: {', '.join(annotations)}")
        with failing():
            wire.bind_reply(await client.bind(current_call().key, node))
        return None

    def _client(self) -> Asking:
        return self._clients[current_call().profile]


def interested(settings: Settings, pod: Pod) -> bool:
    """Return whether a container names a managed resource; without such resources every pod counts."""
    resources = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    named = {name for each in resources for name in (*each.requests, *each.limits)}
    return not settings.managed or not settings.managed.isdisjoint(named)


def trace_context() -> dict[str, str]:
    """Return the headers that carry the call's trace on."""
    headers: dict[str, str] = {}
    inject(headers)
    return headers


@contextmanager
def failing() -> Iterator[None]:
    """Fail the call with the extender's words where it fails. Raises: ContractError."""
    try:
        yield
    except ExtenderError as error:
        raise ContractError(str(error)) from error


def reason(said: wire.FilterReply, name: str) -> Reason:
    """Return why the extender turns the node down."""
    if text := said.unresolvable.get(name):
        return Reason(text, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    text = said.failed.get(name)
    return Reason(text) if text else LEFT_OUT
