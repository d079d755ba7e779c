"""An HTTP extender, and all extenders of a configuration in calling order.

Source: pkg/scheduler/extender.go (v1.36).
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, overload

import msgspec

from berth.config.types import ExtenderConfig
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.extender import ExtenderVerdicts, Victims
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.objects.api_object import TypedObject
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.extender import wire
from berth.out_of_tree.extender.client import ExtenderClient
from berth.out_of_tree.extender.errors import (
    ExtenderError,
    NotAskedError,
    ReplyError,
    StatusError,
    UnansweredError,
)
from berth.out_of_tree.extender.request_attributes import http_outcome, http_request
from berth.out_of_tree.transport.traceparent import CallSpan

Landed = Callable[[Pod, str], Awaitable[bool]]
"""Whether the API server has the pod on that node."""


class BindGuard(Protocol):
    """Whether this process may bind, and a count of bindings that may still take effect."""

    landing_seconds: float
    """How long after a binding was sent it may take effect."""

    def __call__(self) -> bool:
        """Whether this process may bind."""

    def sent(self) -> int:
        """Count a binding that is about to be sent; returns its number."""

    def ended(self, number: int, *, certain: bool) -> None:
        """Count a binding out: its outcome is known, or will never be."""


class AlwaysMayBind:
    """The guard of a process without leader election."""

    landing_seconds = math.inf

    def __call__(self) -> bool:
        """Yes."""
        return True

    def sent(self) -> int:
        """Count nothing."""
        return 0

    def ended(self, number: int, *, certain: bool) -> None:
        """Count nothing."""


class ExtenderContext(msgspec.Struct, frozen=True):
    """State shared by extenders: the objects' JSON, whether a trace is sampled, how bindings are checked."""

    nodes: RawObjects[Node]
    pods: RawObjects[Pod]
    sampled: Callable[[bytes], bool] = lambda _: False
    landed: Landed | None = None
    guard: BindGuard = msgspec.field(default_factory=AlwaysMayBind)
    """Asked before each bind call, which is on its account until it is answered."""


class HttpExtender:
    """Implements berth.framework.extender.Extender."""

    def __init__(self, settings: ExtenderConfig, context: ExtenderContext, client: ExtenderClient) -> None:
        self._settings = settings
        self._context = context
        self._client = client
        self._managed = frozenset(resource.name for resource in settings.managed_resources)

    @property
    def name(self) -> str:
        """Its URL prefix, as configured."""
        return self._settings.url_prefix

    @property
    def ignorable(self) -> bool:
        """Whether its errors are passed over."""
        return self._settings.ignorable

    @property
    def weight(self) -> int:
        """What its scores are multiplied by."""
        return self._settings.weight

    @property
    def filters(self) -> bool:
        """Whether it has a filter verb."""
        return bool(self._settings.filter_verb)

    @property
    def prioritizes(self) -> bool:
        """Whether it has a prioritize verb."""
        return bool(self._settings.prioritize_verb)

    @property
    def preempts(self) -> bool:
        """Whether it has a preempt verb."""
        return bool(self._settings.preempt_verb)

    @property
    def binds(self) -> bool:
        """Whether it has a bind verb."""
        return bool(self._settings.bind_verb)

    def interested(self, pod: Pod) -> bool:
        """Whether the pod asks for a resource that it manages; without such resources it is always asked."""
        if not self._managed:
            return True
        resources = [c.resources for c in (*pod.spec.containers, *pod.spec.init_containers)]
        return any(not self._managed.isdisjoint({*(r.requests or ()), *(r.limits or ())}) for r in resources)

    async def filter(self, attempt: Attempt, nodes: Sequence[Node]) -> ExtenderVerdicts:
        """Which of the nodes pass.

        Raises: ExtenderError.
        """
        data = await self._ask(
            self._settings.filter_verb, self._about(attempt, nodes), attempt.record, again=True
        )
        reply = wire.filter_reply(data, by_name=self._settings.node_cache_capable)
        sent = {node.metadata.name for node in nodes}
        for name in reply.names or ():
            if name not in sent:
                raise ReplyError(
                    f'extender "{self.name}" claims a filtered node "{name}" '
                    "which is not found in the input node list"
                )
        return ExtenderVerdicts(reply.names or (), reply.failed, reply.unresolvable)

    def prioritize(self, attempt: Attempt, nodes: Sequence[Node]) -> Awaitable[Mapping[str, int]]:
        """A score by node name; the call is on its way when this returns."""
        return asyncio.create_task(self._prioritize(attempt, nodes), name=f"scores of {self.name}")

    async def _prioritize(self, attempt: Attempt, nodes: Sequence[Node]) -> Mapping[str, int]:
        body = self._about(attempt, nodes)
        data = await self._ask(self._settings.prioritize_verb, body, attempt.record, again=True)
        return wire.prioritize_reply(data)

    async def preempt(self, attempt: Attempt, victims: Mapping[str, Victims]) -> dict[str, Victims]:
        """The candidate nodes that are left, each with the pods to evict there.

        Raises: ExtenderError, also where a victim is not on its node.
        """
        by_uid = self._settings.node_cache_capable
        listed = {
            name: (
                [pod.uid for pod in on.pods],
                [] if by_uid else [self._pod(pod) for pod in on.pods],
                on.pdb_violations,
            )
            for name, on in victims.items()
        }
        body = wire.preempt_body(self._pod(attempt.pod), listed, by_uid=by_uid)
        reply = wire.preempt_reply(
            await self._ask(self._settings.preempt_verb, body, attempt.record, again=True)
        )
        return {name: self._victims(attempt, name, answer) for name, answer in reply.items()}

    def _victims(self, attempt: Attempt, node_name: str, answer: wire.VictimsReply) -> Victims:
        row = attempt.nodes.row_of.get(node_name)
        if row is None:
            raise ReplyError(f'extender: {self.name} names node "{node_name}", which is not known')
        there = attempt.nodes.pods[row]
        uids = dict.fromkeys(answer.uids)
        for uid in uids:
            if uid not in there:
                raise ReplyError(
                    f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {node_name}, "
                    "but the pod is not found on that node"
                )
        return Victims(tuple(there[uid].pod for uid in uids), answer.pdb_violations)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Have the pod bound; an answer that leaves open whether it is, is cleared up by reading the pod.

        Raises: ExtenderError.
        """
        if not self._context.guard():
            raise NotAskedError("not sent: the right to bind could not be proven")
        body = wire.bind_body(pod.name, pod.namespace, pod.uid, node_name)
        try:
            wire.bind_reply(await self._bound(body, state.get(CycleRecord)))
        except ExtenderError:
            if self._context.landed is None or not await self._context.landed(pod, node_name):
                raise

    async def _bound(self, body: bytes, record: CycleRecord | None) -> bytes:
        """The reply to a binding, waited for no longer than the lease is sure to last.

        An extender that answers later binds without a leader that knows of it: its protocol has no bound.
        Raises: ExtenderError.
        """
        guard = self._context.guard
        seconds = guard.landing_seconds
        number, certain = guard.sent(), False
        try:
            async with asyncio.timeout(seconds if seconds < math.inf else None):
                reply = await self._ask(self._settings.bind_verb, body, record)
            certain = True
        except (StatusError, ReplyError):
            certain = True
            raise
        except TimeoutError:
            text = f"no answer within {seconds:g}s, for so long the lease is sure to last"
            raise UnansweredError(f"{self.name}: {text}") from None
        finally:
            guard.ended(number, certain=certain)
        return reply

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _about(self, attempt: Attempt, nodes: Sequence[Node]) -> bytes:
        supposed: HypotheticalPod | None = attempt.state.get(HypotheticalPod)
        if supposed is None:
            pod = self._pod(attempt.pod)
        else:
            pod = supposed.object(self._context.pods.get(supposed.before.uid))
        if self._settings.node_cache_capable:
            return wire.nodes_body(pod, nodes=None, names=[node.metadata.name for node in nodes])
        known = self._context.nodes
        return wire.nodes_body(pod, nodes=[_json(node, known) for node in nodes], names=None)

    def _pod(self, pod: Pod) -> bytes:
        return _json(pod, self._context.pods)

    async def _ask(self, verb: str, body: bytes, record: CycleRecord | None, *, again: bool = False) -> bytes:
        """The body of the reply. A question may be asked `again` where a kept connection turns out closed.

        Raises: UnansweredError, StatusError, ReplyError.
        """
        attributes = http_request(self._client.url(verb))
        with CallSpan(
            record, f"{self.name} {verb}", self._context.sampled, attributes, http_outcome
        ) as metadata:
            send = self._client.ask if again else self._client.tell
            return await send(verb, body, dict(metadata))


class HttpExtenders(Sequence[HttpExtender]):
    """The extenders of a configuration, in calling order; has to be made on the running event loop."""

    def __init__(self, settings: Iterable[ExtenderConfig], context: ExtenderContext) -> None:
        self._all = [
            HttpExtender(one, context, ExtenderClient(one.url_prefix, one.http_timeout, one.tls_config))
            for one in settings
        ]

    @property
    def want_objects(self) -> bool:
        """Whether any of them is sent pods or nodes."""
        return any(one.filters or one.prioritizes or one.preempts for one in self._all)

    async def close(self) -> None:
        """Close all connections."""
        for extender in self._all:
            await extender.close()

    @overload
    def __getitem__(self, index: int) -> HttpExtender: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HttpExtender]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[HttpExtender]:
        return iter(self._all)


def _json(obj: TypedObject, known: RawObjects[Any]) -> bytes:
    """The object as the API server wrote it, or what we know of it where those bytes were not kept."""
    return known.get(obj.uid) or msgspec.json.encode(obj.written() if isinstance(obj, Pod) else obj)
