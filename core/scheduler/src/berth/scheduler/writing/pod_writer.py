"""The core's writes, made of the client's calls: certain bindings, and status patches that say something.

Source: pkg/scheduler/framework/plugins/defaultbinder, util/utils.go PatchPodStatus (Kubernetes v1.36);
docs/architecture.md "Nothing is bound twice, nothing is lost".
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import msgspec

from berth.client.errors import ClientError, ConflictError, NotFoundError, ServerError
from berth.client.pods import Ambiguous, BindOutcome, Bound, Conflict, NotFound, PodWrites, Rejected
from berth.framework.handle import NO_ANNOTATIONS, OnBound, PodGoneError
from berth.framework.pacing import Backoff, Pauses
from berth.framework.pod_conditions import changes, held
from berth.framework.ports.background import Background
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.pods.pod_decoding import decode_pod

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]
Failed = Ambiguous | Conflict | NotFound | Rejected

# How often the API server may answer with an error of its own or a conflict before the pod goes back to the
# queue: as often as client-go's DefaultBackoff tries (kubernetes/kubernetes#138855).
REFUSALS = 4
# How many versions of a waiting pod a status is written to, where others change it meanwhile.
STATUS_VERSIONS = 4
WRITE_BACKOFF = Backoff(0.05, longest=5.0, jitter=1.0)
# What a proxy says when it has lost sight of the request: that may still arrive.
FROM_IN_BETWEEN = frozenset({502, 504})


class BindFailedError(Exception):
    """The binding did not land; the text is the API server's."""


class PodWriter:
    """Implements berth.framework.handle.ApiWriter."""

    def __init__(self, pods: PodWrites, background: Background, *, sleep: Sleep = asyncio.sleep) -> None:
        self._pods = pods
        self._background = background
        self._sleep = sleep
        self._decode = decode_pod
        self._rng = Random()

    def bind(
        self, pod: Pod, node_name: str, done: OnBound, annotations: Mapping[str, str] = NO_ANNOTATIONS
    ) -> None:
        """Create the binding, and call `done` with None once it is certain that it landed.

        With BindFailedError where it is certain that it did not. Only an answer that leaves this open costs a
        task, which reads the pod.
        """

        def answered(outcome: BindOutcome) -> None:
            if isinstance(outcome, Bound):
                done(None)
            elif isinstance(outcome, Ambiguous | Conflict):
                work = self._cleared_up(pod, node_name, done, annotations, outcome)
                self._background.spawn(work, f"binding in doubt of {pod.key}")
            else:
                done(BindFailedError(outcome.message))

        self._pods.bind(
            pod.namespace, pod.name, pod.uid, node_name, answered=answered, annotations=annotations
        )

    async def _cleared_up(
        self,
        pod: Pod,
        node_name: str,
        done: OnBound,
        annotations: Mapping[str, str],
        outcome: Ambiguous | Conflict,
    ) -> None:
        try:
            await self._until_certain(pod, node_name, annotations, outcome)
        except Exception as error:  # noqa: BLE001 - the binding cycle gets it
            done(error)
        else:
            done(None)

    async def _until_certain(
        self, pod: Pod, node_name: str, annotations: Mapping[str, str], outcome: BindOutcome
    ) -> None:
        """Return once the binding landed, of which one try is in doubt. Raises: BindFailedError."""
        pauses = Pauses(WRITE_BACKOFF, self._rng)
        refusals = 0
        while not isinstance(outcome, Bound):
            # What an earlier try did is open until a read shows, whatever became of this one.
            if await self.landed(pod, node_name):
                return
            refusals = refusals + 1 if _is_refusal(outcome) else 0
            if not isinstance(outcome, Ambiguous | Conflict) or refusals == REFUSALS:
                raise BindFailedError(_words_of(outcome))
            # An unanswered try may yet arrive: the same binding once more is harmless, no other would be.
            await self._sleep(pauses.next())
            answer = self._background.outcome()
            self._pods.bind(
                pod.namespace, pod.name, pod.uid, node_name, answered=answer.set, annotations=annotations
            )
            outcome = await answer

    async def landed(self, pod: Pod, node_name: str) -> bool:
        """Whether the API server has the pod on the node; False where it is on none.

        Raises: BindFailedError where the pod is gone, going or on another node.
        """
        current = await self._read(pod)
        if current is None or current.uid != pod.uid:
            raise BindFailedError(f"pod {pod.key} is gone")
        if current.terminating and not current.node_name:
            raise BindFailedError(f"pod {pod.key} is being deleted, cannot be assigned to a host")
        if current.node_name and current.node_name != node_name:
            raise BindFailedError(f"pod {pod.key} is already assigned to node {current.node_name}")
        return current.node_name == node_name

    async def _read(self, pod: Pod) -> Pod | None:
        pauses = Pauses(WRITE_BACKOFF, self._rng)
        while True:
            try:
                return self._decode(await self._pods.get(pod.namespace, pod.name))
            except NotFoundError:
                return None
            except ClientError as error:
                log.info("binding's outcome still unknown pod=%s err=%s", pod.key, error)
                await self._sleep(pauses.next())

    async def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write what differs from the status that the scheduler holds; nothing differs, nothing is sent.

        A waiting pod's status is written only while it waits: a late patch never lands on a bound pod
        (kubernetes/kubernetes#139417), and none lands on another pod of the same name.
        Raises: PodGoneError; ClientError.
        """
        current: Pod | None = pod
        for _ in range(STATUS_VERSIONS):
            if current is None or current.uid != pod.uid:
                raise PodGoneError(f"pod {pod.key} is gone")
            status = _status_patch(current, condition, nominated_node_name)
            if not status or (current.node_name and not pod.node_name):
                return
            version = "" if pod.node_name else current.metadata.resource_version
            try:
                await self._pods.patch_status(
                    pod.namespace, pod.name, {"status": status}, uid=pod.uid, version=version
                )
            except NotFoundError as error:
                raise PodGoneError(str(error)) from error
            except ConflictError as error:
                conflict = error
                current = await self._read(pod)
            else:
                return
        raise conflict

    async def patch_pod_metadata(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Merge labels and annotations into the pod of that UID."""
        await self._pods.patch_metadata(
            pod.namespace,
            pod.name,
            uid=pod.uid,
            annotations=patch.get("annotations"),
            labels=patch.get("labels"),
        )

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod of that UID."""
        try:
            await self._pods.delete(pod.namespace, pod.name, pod.uid)
        except (NotFoundError, ConflictError) as error:
            raise PodGoneError(str(error)) from error


def _status_patch(
    pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
) -> dict[str, Any]:
    """What of the condition and the nomination the pod does not have yet."""
    status: dict[str, Any] = {}
    if condition is not None and changes(pod, condition):
        status["conditions"] = [_merged(pod, condition)]
    if nominated_node_name is not None and nominated_node_name != pod.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    return status


def _is_refusal(outcome: Failed) -> bool:
    """Whether the API server itself is done with the try, and at most its words leave open if it landed."""
    if isinstance(outcome, Conflict):
        return True
    error = outcome.error if isinstance(outcome, Ambiguous) else None
    return isinstance(error, ServerError) and error.status not in FROM_IN_BETWEEN


def _words_of(outcome: Failed) -> str:
    return str(outcome.error) if isinstance(outcome, Ambiguous) else outcome.message


def _merged(pod: Pod, condition: PodCondition) -> dict[str, Any]:
    """The condition as it is sent: its transition time moves only where its status does."""
    old = held(pod, condition.type)
    document: dict[str, Any] = msgspec.to_builtins(condition)
    if old is not None and old.status == condition.status and old.last_transition_time:
        document["lastTransitionTime"] = old.last_transition_time
    return document
