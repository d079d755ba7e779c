"""A plugin's requeue stream, read no faster than the queue can process its messages.

A plugin that sends more is read later: gRPC's flow control holds its messages back.

Source: docs/protocol.md "Hints", "Limits".
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

from berth.framework.pacing import TokenBucket
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.handshake import readable
from berth.out_of_tree.limits import (
    KEYS_A_MESSAGE,
    NAMED_PODS,
    NAMES_A_MESSAGE,
    REQUEUE_ALL_COST,
    SORT_KEYS,
)
from berth.out_of_tree.plugin_log import PluginLog
from berth_plugin_proto import queueing_pb2

Sleep = Callable[[float], Awaitable[None]]


async def paced(
    plugin: str,
    stream: AsyncIterable[queueing_pb2.RequeueResponse | None],
    rate: TokenBucket,
    log: PluginLog,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[queueing_pb2.RequeueResponse]:
    """The messages that ask for a requeue, at most at that rate.

    Raises: ProtocolError where a message can't be read, or names too many pods.
    """
    async for response in stream:
        message = readable(plugin, response)
        cost = _cost(plugin, message)
        if wait := rate.reserve(cost):
            await sleep(wait)
        if message.WhichOneof("action") is None:
            log.warning("requeue message without an action plugin=%s", plugin)
        else:
            yield message


def _cost(plugin: str, message: queueing_pb2.RequeueResponse) -> float:
    """The message's cost in units of the rate. Raises: ProtocolError."""
    action = message.WhichOneof("action")
    if action == "requeue_all":
        return REQUEUE_ALL_COST
    if action == "sort_keys":
        count = max(len(message.sort_keys.uids), len(message.sort_keys.keys))
        if count > SORT_KEYS:
            raise ProtocolError(plugin, f"{count} sort keys in one message, at most {SORT_KEYS} are read")
        return 1 + count / KEYS_A_MESSAGE
    named = 0 if action is None else len(getattr(message, action).uids)
    if named > NAMED_PODS:
        raise ProtocolError(plugin, f"names {named} pods in one message, at most {NAMED_PODS} are read")
    return 1 + named / NAMES_A_MESSAGE
