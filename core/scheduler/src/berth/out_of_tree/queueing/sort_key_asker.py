"""Asks a QueueSort sidecar for the sort keys of queued pods, and applies its own changes of them.

    queue --pods--> SortKeyAsker: one call at a time for each profile, many pods in each
                        |
                        +--keys--> the pods that wait for them; too late: to the queue, as changes
    Requeue stream --changes--> those of pods that were asked about --> queue

While a call is under way, further pods are batched for the next. A pod waits for the deadline of a call and
is then queued without a key; it is asked about again after a pause, or when the plugin reconnects.

Source: docs/protocol.md "Queue order".
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from berth.framework.queueing.queued_pod import NO_KEY, SortKey
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.packing import sort_keys_of
from berth_plugin_proto import identity_pb2, queueing_pb2

QUEUE_SORT = identity_pb2.EXTENSION_POINT_QUEUE_SORT
PODS_A_CALL = 512
MAX_BYTES = 3 << 20
"""What the objects of pods in one call may come to: gRPC takes 4 MiB."""
LEFT_A_CALL = 16384
LEFT_SECONDS = 1.0
"""How long the plugin may not know of pods that left, where there is nothing else to ask."""
RETRY_SECONDS = 1.0


class SortKeyAsker:
    """Asks one plugin on behalf of one profile; `caller` is called for each question: versions change."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller
        self._pods: dict[str, Pod] = {}
        """All pods that were asked about and wait, by UID."""
        self._keys: dict[str, SortKey] = {}
        """The newest key of each that has one."""
        self._unasked: dict[str, Pod] = {}
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._left: list[str] = []
        self._anew = True
        self._resting = False
        """Whether a call failed a moment ago."""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _listens(self) -> bool:
        connection = self._caller().connection
        return connection.ready and connection.offers(QUEUE_SORT)

    async def key_of(self, pod: Pod) -> SortKey:
        """The pod's key; an older one, or NO_KEY, where the plugin is disconnected, or late."""
        self._pods[pod.uid] = self._unasked[pod.uid] = pod
        if self._listens and not self._resting:
            await self._wait_for(pod.uid)
        return self._keys.get(pod.uid, NO_KEY)

    async def _wait_for(self, uid: str) -> None:
        awaited = self._awaited[uid] = asyncio.get_running_loop().create_future()
        self._start()
        try:
            async with asyncio.timeout(self._caller().connection.seconds_for("SortKeys")):
                await awaited
        except TimeoutError:
            self._count("late", 1)
        finally:
            if self._awaited.get(uid) is awaited:
                del self._awaited[uid]

    def left(self, uid: str) -> None:
        """Tell the plugin that the pod left the queue, with the next call or soon by one of its own."""
        self._unasked.pop(uid, None)
        self._keys.pop(uid, None)
        if self._pods.pop(uid, None) is None or not self._listens:
            return
        self._left.append(uid)
        self._start_in(LEFT_SECONDS)

    def ask_anew(self) -> None:
        """Ask about all pods that wait: the plugin may be another process."""
        self._anew, self._resting = True, False
        self._left.clear()
        self._unasked = dict(self._pods)
        if self._listens:
            self._start()

    def change(self, keys: Mapping[str, SortKey]) -> dict[str, SortKey]:
        """Apply keys that the plugin changed by itself; returns those of pods that it was not asked about."""
        known = {uid: key for uid, key in keys.items() if uid in self._pods}
        self._keys |= known
        self._take(known)
        return {uid: key for uid, key in keys.items() if uid not in known}

    def close(self) -> None:
        """End; pods that wait for keys are queued without."""
        if self._task is not None:
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._go_on(self._awaited)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="sort keys")

    def _start_in(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._on_time)

    def _on_time(self) -> None:
        self._timer, self._resting = None, False
        if self._listens:
            self._start()

    async def _run(self) -> None:
        while self._unasked or self._left:
            batch, left = self._next_pods(), self._left[:LEFT_A_CALL]
            try:
                keys = await self._ask(batch, left)
            except SidecarError as error:
                self._caller().connection.log.warning("pods queued without sort keys err=%s", error)
                self._later(batch)
                return
            except BaseException:
                self._later(batch)
                raise
            del self._left[: len(left)]
            self._answered(dict(zip((pod.uid for pod in batch), keys, strict=True)))

    def _next_pods(self) -> list[Pod]:
        raw, size, batch = self._caller().around.pods, 0, list[Pod]()
        for pod in self._unasked.values():
            size += len(raw.get(pod.uid))
            if len(batch) == PODS_A_CALL or (batch and size > MAX_BYTES):
                break
            batch.append(pod)
        for pod in batch:
            del self._unasked[pod.uid]
        return batch

    async def _ask(self, pods: list[Pod], left: list[str]) -> list[SortKey]:
        """The keys of these pods. Raises: SidecarError."""
        caller = self._caller()
        request = queueing_pb2.SortKeysRequest(
            profile=caller.profile, pods=map(caller.ref, pods), left_uids=left, anew=self._anew
        )
        read = partial(_read, caller.plugin, len(pods))
        keys = await caller.ask_queueing("SortKeys", request, read)
        self._anew = False
        return keys

    def _answered(self, keys: Mapping[str, SortKey]) -> None:
        """Set the keys of the pods that wait; pods that were queued without one get theirs as changes."""
        known = {uid: key for uid, key in keys.items() if uid in self._pods}
        self._keys |= known
        awaited = [uid for uid in known if uid in self._awaited]
        self._count("given", len(awaited))
        self._go_on(awaited)
        self._take({uid: key for uid, key in known.items() if uid not in self._awaited})

    def _later(self, batch: Iterable[Pod]) -> None:
        """Queue all pods that wait without keys, and ask about them again after a pause."""
        self._unasked |= {pod.uid: pod for pod in batch if self._pods.get(pod.uid) is pod}
        self._resting = True
        self._count("failed", len(self._awaited))
        self._go_on(self._awaited)
        self._start_in(RETRY_SECONDS)

    def _go_on(self, uids: Iterable[str]) -> None:
        for uid in uids:
            awaited = self._awaited[uid]
            if not awaited.done():
                awaited.set_result(None)

    def _take(self, keys: Mapping[str, SortKey]) -> None:
        self._count("changed", len(keys))
        if keys:
            self._caller().around.take_sort_keys(keys)

    def _count(self, outcome: str, count: int) -> None:
        caller = self._caller()
        if count:
            caller.around.metrics.sorted(caller.plugin, outcome, count)


def _read(plugin: str, pods: int, response: queueing_pb2.SortKeysResponse) -> list[SortKey]:
    return sort_keys_of(plugin, response.keys, pods)
