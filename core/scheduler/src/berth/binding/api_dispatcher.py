"""Writes about pods, one at a time for each pod, merged and dropped as newer ones make them superfluous.

    add --> stored, one for each pod --(first come, first served)--> in flight --> settled
              |  ^                                                      |
              |  +-- a newer call for the pod takes its place,          +-- a newer call came meanwhile:
              |      saying both where it can                               the pod's turn comes again
              +-- without effect, now or once the watch has shown it: dropped

Between the core and its writer where the gate SchedulerAsyncAPICalls is on. Source:
pkg/scheduler/backend/api_dispatcher/api_dispatcher.go APIDispatcher (Kubernetes v1.36); KEP-5229.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from berth.binding.api_call import (
    OVERWRITTEN_BY_RELEVANCE,
    OVERWRITTEN_BY_SAME,
    SKIPPED_FOR_RELEVANCE,
    WITHOUT_EFFECT,
    WITHOUT_EFFECT_ANY_MORE,
    ApiCall,
    CallType,
    NotNeeded,
)
from berth.framework.clock import Clock
from berth.framework.handle import NO_ANNOTATIONS, ApiWriter, OnBound
from berth.framework.ports.background import Background
from berth.framework.ports.measurements import NO_MEASUREMENTS, Measurements
from berth.objects.pods.pod import Pod, PodCondition


class CallMetrics:
    """Counts asynchronous API calls in the given measurements.

    Source: pkg/scheduler/metrics/metrics.go AsyncAPICallsTotal (Kubernetes v1.36); KEP-5229.
    """

    def __init__(self, measurements: Measurements = NO_MEASUREMENTS) -> None:
        self._measurements = measurements

    def executed(self, call_type: str, result: str, seconds: float) -> None:
        """Count a call that was made, and observe how long it took."""
        self._measurements.count("scheduler_async_api_call_execution_total", call_type, result)
        self._measurements.observe(
            "scheduler_async_api_call_execution_duration_seconds", seconds, call_type, result
        )


class _Settled:
    """The result of a call for its callback; a call that is not needed ended well."""

    def __init__(self, done: OnBound) -> None:
        self._done: OnBound | None = done

    def set(self, error: Exception | None) -> bool:
        """Deliver; False where the call was settled before."""
        done, self._done = self._done, None
        if done is not None:
            done(None if isinstance(error, NotNeeded) else error)
        return done is not None


class ApiDispatcher:
    """Implements berth.framework.handle.ApiWriter on another writer.

    What is begun with `bind` and `patch_pod_status` ends once the call is settled, made or not; the rest goes
    straight on.
    `pending` says how many calls of each type are stored: pending_async_api_calls.
    """

    def __init__(
        self, writer: ApiWriter, background: Background, clock: Clock, metrics: CallMetrics | None = None
    ) -> None:
        self.pending: Counter[str] = Counter()
        self._writer = writer
        self._background = background
        self._clock = clock
        self._metrics = metrics or CallMetrics()
        self._stored: dict[str, ApiCall] = {}
        self._turns: deque[str] = deque()
        self._in_flight: set[str] = set()
        self._serving = False

    def bind(
        self, pod: Pod, node_name: str, done: OnBound, annotations: Mapping[str, str] = NO_ANNOTATIONS
    ) -> None:
        """Bind the pod; `done` is called once the call is settled."""
        call = ApiCall(CallType.BINDING, pod, _Settled(done), node_name=node_name, annotations=annotations)
        self.add(call)

    async def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write what this or a newer call says. Raises: what the writer raises."""
        outcome = self._background.outcome()
        self.add(ApiCall(CallType.STATUS_PATCH, pod, outcome, condition, nominated_node_name))
        error = await outcome
        if error is not None and not isinstance(error, NotNeeded):
            raise error

    async def patch_pod_metadata(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Merge labels and annotations into the pod."""
        await self._writer.patch_pod_metadata(pod, patch)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod."""
        await self._writer.delete_pod(pod)

    def sync(self, pod: Pod) -> None:
        """The watch has a newer version of the pod: what is stored may say nothing new any more."""
        call = self._stored.get(pod.uid)
        if call is None or call.begun:
            return
        call.pod = pod if call.type is CallType.STATUS_PATCH else call.pod
        if call.without_effect and pod.uid not in self._in_flight:
            self._drop(call)
            call.outcome.set(NotNeeded(WITHOUT_EFFECT_ANY_MORE))

    def add(self, call: ApiCall) -> None:
        """Take a call in; its outcome says what became of it."""
        uid = call.pod.uid
        older = self._stored.get(uid)
        if older is not None:
            if call.type.relevance < older.type.relevance:
                call.outcome.set(NotNeeded(SKIPPED_FOR_RELEVANCE))
                return
            self._replace(older, call)
        if call.without_effect and uid not in self._in_flight:
            if older is not None:
                self._drop(older)
            call.outcome.set(NotNeeded(WITHOUT_EFFECT))
            return
        self._store(call)
        if older is None:
            self._turns.append(uid)
            self._serve()

    def _replace(self, older: ApiCall, call: ApiCall) -> None:
        if call.type is older.type:
            call.absorb(older)
            older.outcome.set(NotNeeded(OVERWRITTEN_BY_SAME))
        elif not older.begun:
            older.outcome.set(NotNeeded(OVERWRITTEN_BY_RELEVANCE))

    def _store(self, call: ApiCall) -> None:
        older = self._stored.get(call.pod.uid)
        if older is not None:
            self.pending[older.type] -= 1
        self._stored[call.pod.uid] = call
        self.pending[call.type] += 1

    def _drop(self, call: ApiCall) -> None:
        del self._stored[call.pod.uid]
        self.pending[call.type] -= 1

    def _serve(self) -> None:
        if not self._serving:
            self._serving = True
            self._background.spawn(self._work(), "API calls")

    async def _work(self) -> None:
        """Begin every stored call whose turn has come, each in a task of its own."""
        try:
            while self._turns:
                call = self._stored.get(self._turns.popleft())
                if call is not None and call.pod.uid not in self._in_flight:
                    self._in_flight.add(call.pod.uid)
                    call.begun = True
                    name = f"{call.type} of {call.pod.key}"
                    self._background.spawn(self._execute(call), name, call.context)
        finally:
            self._serving = False

    async def _execute(self, call: ApiCall) -> None:
        started, error = self._clock.monotonic(), None
        try:
            await call.send(self._writer, self._background)
        except Exception as raised:  # noqa: BLE001 - the caller that waits for it gets the error
            error = raised
        result = "success" if error is None else "error"
        self._metrics.executed(call.type, result, self._clock.monotonic() - started)
        uid = call.pod.uid
        self._in_flight.discard(uid)
        if self._stored.get(uid) is call:
            self._drop(call)
        elif uid in self._stored:
            self._turns.append(uid)
            self._serve()
        call.outcome.set(error)
