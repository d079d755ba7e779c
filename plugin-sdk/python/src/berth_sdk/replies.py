"""What goes back on the stream of calls: one answer a message, or several that are ready together.

While no other call is being answered, an answer is written at once by whoever has it; otherwise it waits a
turn of the loop, to go together with others.
"""

import asyncio
from collections import deque
from typing import Any

import grpc

from berth_sdk._generated import scheduling_pb2

MOST_TOGETHER_BYTES = 1 << 20


class Replies:
    """Answers on their way to the host: those that are ready at the same time share a message."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], tasks: asyncio.TaskGroup) -> None:
        self._context = context
        self._tasks = tasks
        self._ready: deque[scheduling_pb2.ConverseResponse] = deque()
        self._due = 0
        self._writing = False

    def expect(self) -> None:
        """There will be one more answer."""
        self._due += 1

    async def send(self, answer: scheduling_pb2.ConverseResponse) -> None:
        """Have an expected answer written, with what else becomes ready in this turn of the loop."""
        self._due -= 1
        self._ready.append(answer)
        if self._writing:
            return
        self._writing = True
        if self._due:
            self._tasks.create_task(self._write())
        else:
            await self._write()

    async def _write(self) -> None:
        while self._ready:
            message = self._ready.popleft()
            size = message.ByteSize()
            while self._ready and (size := size + self._ready[0].ByteSize()) <= MOST_TOGETHER_BYTES:
                message.also.append(self._ready.popleft())
            await self._context.write(message)
        self._writing = False
