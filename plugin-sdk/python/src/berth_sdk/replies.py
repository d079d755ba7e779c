"""What goes back on the stream of calls: answers that are ready at the same time share a message."""

from collections import deque
from typing import Any

import grpc

from berth_plugin_proto import scheduling_pb2

MAX_TOGETHER_BYTES = 1 << 20


class Replies:
    """Answers on their way to the host: those that come while a message is being written go with the next."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context
        self._ready: deque[scheduling_pb2.ConverseResponse] = deque()
        self._writing = False

    async def send(self, *answers: scheduling_pb2.ConverseResponse) -> None:
        """Have answers written, with others that are ready by then."""
        self._ready += answers
        if self._writing:
            return
        self._writing = True
        try:
            while self._ready:
                await self._context.write(self._next())
        finally:
            self._writing = False

    def _next(self) -> scheduling_pb2.ConverseResponse:
        message = self._ready.popleft()
        size = message.ByteSize()
        while self._ready and (size := size + self._ready[0].ByteSize()) <= MAX_TOGETHER_BYTES:
            message.also.append(self._ready.popleft())
        return message
