"""Telling the scheduler, unasked, that pods are worth another attempt or may stop waiting."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from threading import Lock

from berth_plugin_proto import queueing_pb2 as pb
from berth_sdk.outcomes import SortKey
from berth_sdk.packing import pack_sort_key

KEYS_A_MESSAGE = 4096


class Requeue:
    """The plugin's side of the Requeue stream; its methods may be called from any thread.

    What is said while no scheduler listens is lost: it starts by trying everything anyway.
    """

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Queue[pb.RequeueResponse], asyncio.AbstractEventLoop] = {}
        self._numbering = Lock()
        self.last_number = 0
        """That of what was said last, 0 if nothing was."""

    def pods(self, uids: Iterable[str], cause: str) -> None:
        """Try these pods again."""
        self._say(pb.RequeueResponse(requeue=pb.PodSet(uids=uids), cause=cause))

    def all_rejected(self, cause: str) -> None:
        """Try all pods again that this plugin rejected."""
        self._say(pb.RequeueResponse(requeue_all=pb.AllRejected(), cause=cause))

    def allow(self, uids: Iterable[str], cause: str) -> None:
        """Let pods go on that wait at Permit."""
        self._say(pb.RequeueResponse(allow_waiting=pb.PodSet(uids=uids), cause=cause))

    def reject(self, uids: Iterable[str], cause: str) -> None:
        """Stop pods that wait at Permit."""
        self._say(pb.RequeueResponse(reject_waiting=pb.PodSet(uids=uids), cause=cause))

    def sort_keys(self, keys: Mapping[str, SortKey], cause: str) -> None:
        """Sort these pods, by UID, by these keys from now on.

        Raises: ContractError: one of them is no key.
        """
        pairs = [(uid, pack_sort_key(key)) for uid, key in keys.items()]
        for start in range(0, len(pairs), KEYS_A_MESSAGE):
            part = pairs[start : start + KEYS_A_MESSAGE]
            changed = pb.PodSortKeys(uids=[uid for uid, _ in part], keys=[key for _, key in part])
            self._say(pb.RequeueResponse(sort_keys=changed, cause=cause))

    async def listen(self) -> AsyncIterator[pb.RequeueResponse]:
        """Yield what is said from now on."""
        queue: asyncio.Queue[pb.RequeueResponse] = asyncio.Queue()
        self._listeners[queue] = asyncio.get_running_loop()
        try:
            while True:
                yield await queue.get()
        finally:
            del self._listeners[queue]

    def _say(self, message: pb.RequeueResponse) -> None:
        with self._numbering:
            self.last_number = message.number = self.last_number + 1
            for queue, loop in tuple(self._listeners.items()):
                loop.call_soon_threadsafe(queue.put_nowait, message)
