"""One state stream to a plugin: resume or full transfer, then every step, until the stream breaks.

    Held --> Begin(resume) or transfer --> steps ...      beside them: Ack --> acknowledged
                        ^                                             Nack --> transfer again

A host with a clock of its own (a simulation) sends its time before Begin, and whenever it advances:

    reach(time) --> Time .... TimeReached --> when the plugin wants to be woken

Source: docs/protocol.md "State".
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.pacing import TokenBucket
from berth.out_of_tree.cluster_state.state_feed import CHUNK_BYTES, StateFeed
from berth.out_of_tree.errors import NotConnectedError, ProtocolError
from berth.out_of_tree.handshake import readable
from berth.out_of_tree.limits import (
    ACK_SECONDS,
    MESSAGES_A_SECOND,
    MESSAGES_AT_ONCE,
    TRANSFERS_A_SECOND,
    TRANSFERS_AT_ONCE,
)
from berth.out_of_tree.plugin_log import PluginLog
from berth.out_of_tree.plugin_text import bounded
from berth_plugin_proto import state_pb2, state_pb2_grpc

TRANSFER_SECONDS = 30.0
"""How long a plugin may take over a full transfer."""
OPENING_SECONDS = 5.0
CALLS_FIRST_SECONDS = 0.02
"""How long the stream holds a step back for a call to carry it: under load, calls carry nearly all."""


class StateStream:
    """The stream to one plugin; `on_ack` is called with each Ack, `exchanged` with each message on it.

    A plugin that acknowledges no step for a while, or wants the whole state too often, loses the stream.
    """

    def __init__(
        self,
        plugin: str,
        epoch: str,
        feed: StateFeed,
        log: PluginLog,
        *,
        on_ack: Callable[[], None],
        exchanged: Callable[[Any], None],
    ) -> None:
        self.acknowledged = 0
        """The newest generation that the plugin has shown to hold."""
        self.in_step = asyncio.Event()
        """Set while the plugin holds a state at all."""
        self._plugin = plugin
        self._epoch = epoch
        self._feed = feed
        self._log = log
        self._answers = TokenBucket(MESSAGES_A_SECOND, MESSAGES_AT_ONCE, SYSTEM_CLOCK.monotonic)
        self._transfers = TokenBucket(TRANSFERS_A_SECOND, TRANSFERS_AT_ONCE, SYSTEM_CLOCK.monotonic)
        self._sent = 0
        self._overdue = asyncio.Event()
        self._patience: asyncio.TimerHandle | None = None
        self._on_ack = on_ack
        self._exchanged = exchanged
        self._changed = asyncio.Event()
        self._transfer_wanted = False
        self._stream: Any = None
        self._writing = asyncio.Lock()
        self.unix_micros: int | None = None
        """The host's time as it was last said, None where that is the machine's."""
        self._reaching: asyncio.Future[state_pb2.TimeReached] | None = None

    def holds(self, generation: int) -> None:
        """Record that the plugin acknowledged that generation.

        Raises: ProtocolError where there is no such generation yet.
        """
        if generation > self._feed.generation:
            text = f"it holds generation {generation}, the newest is {self._feed.generation}"
            raise ProtocolError(self._plugin, text)
        if generation > self.acknowledged:
            self.acknowledged = generation
            self._wait_for_ack(anew=True)

    def notify(self) -> None:
        """There is a new step to send."""
        self._changed.set()

    def start_over(self) -> None:
        """Send everything again."""
        self.acknowledged = 0
        self.in_step.clear()
        self._transfer_wanted = True
        self._changed.set()

    def hold(self, unix_micros: int) -> None:
        """Set the time to send when the stream begins."""
        self.unix_micros = unix_micros

    async def reach(self, unix_micros: int) -> state_pb2.TimeReached:
        """Send the host's time, and wait for the plugin's answer.

        Raises: NotConnectedError where the stream breaks, or there is no answer in time.
        """
        self.unix_micros = unix_micros
        self._reaching = asyncio.get_running_loop().create_future()
        try:
            async with deadline(self._plugin, ACK_SECONDS, "the time was not answered"):
                await self._say_time(unix_micros)
                return await self._reaching
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:  # it broke a moment ago
            raise NotConnectedError(self._plugin, "the state stream broke") from error
        finally:
            self._reaching = None

    async def _say_time(self, unix_micros: int) -> None:
        await self._write(state_pb2.SyncRequest(time=state_pb2.Time(unix_micros=unix_micros)))

    def _take_time(self, reached: state_pb2.TimeReached) -> None:
        """Raises: ProtocolError where the answer is about another time than the one that was sent."""
        said = self.unix_micros
        if reached.unix_micros != said:
            raise ProtocolError(self._plugin, f"holds time {reached.unix_micros}, {said} was said")
        if reached.HasField("wake_at_unix_micros") and reached.wake_at_unix_micros <= said:
            text = f"wants to be woken at {reached.wake_at_unix_micros}, and holds time {said} already"
            raise ProtocolError(self._plugin, text)
        if self._reaching is not None and not self._reaching.done():
            self._reaching.set_result(reached)

    async def run(self, channel: grpc.aio.Channel, *, clocked: bool = False) -> None:
        """Send every step, and the host's time where the plugin is `clocked`.

        Raises: ProtocolError, NotConnectedError, grpc.aio.AioRpcError.
        """
        state: state_pb2_grpc.StateServiceAsyncStub = state_pb2_grpc.StateServiceStub(channel)
        self._stream = state.Sync()
        async with deadline(self._plugin, OPENING_SECONDS, "the state stream was not answered"):
            held = (await self._read()).held
        self.acknowledged, self._transfer_wanted, self._sent = 0, False, 0
        if clocked and self.unix_micros is not None:
            await self._say_time(self.unix_micros)
            async with deadline(self._plugin, OPENING_SECONDS, "the time was not answered"):
                self._take_time((await self._read()).time_reached)
        sent = await self._begin(held)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_steps(sent))
                tasks.create_task(self._give_up())
                await self._read_answers()
        finally:
            self._wait_no_more()
            if self._reaching is not None and not self._reaching.done():
                self._reaching.set_exception(NotConnectedError(self._plugin, "the state stream broke"))

    async def _give_up(self) -> None:
        """Raises: NotConnectedError once a step was not acknowledged in time."""
        self._overdue.clear()
        await self._overdue.wait()
        text = f"a step of the state was not acknowledged within {ACK_SECONDS:g} s"
        raise NotConnectedError(self._plugin, text)

    def _wait_for_ack(self, *, anew: bool = False) -> None:
        """Wait for an ack; the timeout starts anew with each ack."""
        if anew or self.acknowledged >= self._sent:
            self._wait_no_more()
        if self.acknowledged < self._sent and self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(ACK_SECONDS, self._overdue.set)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    async def _begin(self, held: state_pb2.Held) -> int:
        """Resume, or transfer everything; returns the generation that the plugin then holds."""
        while not self._feed.generation:
            self._changed.clear()
            await self._changed.wait()
        if held.epoch == self._epoch and self._feed.since(held.generation) is not None:
            begin = state_pb2.Begin(epoch=self._epoch, resume_generation=held.generation)
            await self._write(state_pb2.SyncRequest(begin=begin))
            return held.generation
        self._transfer_wanted = True
        return 0

    async def _transfer(self) -> int:
        self._transfer_wanted = False
        generation = self._sent = self._feed.generation
        self._wait_for_ack()
        requests = list(self._feed.transfer())
        await self._write(state_pb2.SyncRequest(begin=state_pb2.Begin(epoch=self._epoch)))
        for request in requests:
            await self._write(request)
        return generation

    async def _send_steps(self, sent: int) -> None:
        """Send the steps that the plugin has not acknowledged by an answered call."""
        due = self._feed.generation
        while True:
            sent = max(sent, self.acknowledged)
            deltas = self._feed.since(sent)
            if self._transfer_wanted or deltas is None:
                self._check_wish()
                due = sent = await self._transfer()
                continue
            # A later step may still be carried by a call.
            steps = [each for each in deltas if each.generation <= due]
            for delta in coalesce(steps, self._feed.carried_to):
                self._sent = delta.generation
                self._wait_for_ack()
                await self._write(state_pb2.SyncRequest(delta=delta))
                sent = delta.generation
            await self._changed.wait()
            self._changed.clear()
            due = self._feed.generation
            if not self._transfer_wanted:
                await asyncio.sleep(CALLS_FIRST_SECONDS)

    def _check_wish(self) -> None:
        """Raises: ProtocolError where the plugin asks for full transfers too often."""
        if self._transfer_wanted and not self._transfers.take():
            text = f"wants the whole state more than {TRANSFERS_AT_ONCE} times in a row"
            raise ProtocolError(self._plugin, text)

    async def _read_answers(self) -> None:
        while True:
            patience = None if self.in_step.is_set() else TRANSFER_SECONDS
            async with deadline(self._plugin, patience, "the state was not acknowledged"):
                answer = await self._read()
            match answer.WhichOneof("body"):
                case "ack":
                    self._take(answer.ack.generation)
                case "nack":
                    self._refused(answer.nack)
                case "time_reached" if self._reaching is not None:
                    self._take_time(answer.time_reached)
                    continue
                case body:
                    raise ProtocolError(self._plugin, f"{body or 'nothing'} where an Ack is due")
            if wait := self._answers.reserve():
                await asyncio.sleep(wait)

    def _take(self, generation: int) -> None:
        if generation < 1:
            raise ProtocolError(self._plugin, f"acknowledged generation {generation}")
        self.holds(generation)
        self.in_step.set()
        self._on_ack()

    def _refused(self, nack: state_pb2.Nack) -> None:
        """Transfer everything after a refused step; a refused transfer ends the connection.

        Raises: ProtocolError.
        """
        if self.in_step.is_set() or nack.reason == state_pb2.NACK_REASON_CANNOT_RESUME:
            text = bounded(nack.message)
            self._log.warning("state refused, sent again plugin=%s err=%s", self._plugin, text)
            self.start_over()
        elif nack.reason != state_pb2.NACK_REASON_OUT_OF_ORDER:  # that is a step sent before the transfer
            raise ProtocolError(self._plugin, f"state refused: {nack.message}")

    async def _write(self, request: state_pb2.SyncRequest) -> None:
        async with self._writing:  # a stream has one writer at a time
            self._exchanged(request)
            await self._stream.write(request)

    async def _read(self) -> state_pb2.SyncResponse:
        """Raises: ProtocolError where the plugin ended the stream."""
        answer = await self._stream.read()
        if answer is grpc.aio.EOF:
            raise ProtocolError(self._plugin, "ended the state stream")
        response: state_pb2.SyncResponse = readable(self._plugin, answer)
        self._exchanged(response)
        return response


def coalesce(deltas: Iterable[state_pb2.Delta], carried_to: int) -> Iterator[state_pb2.Delta]:
    """Coalesce consecutive steps: a message costs far more than a pod in it.

    Steps up to `carried_to` stay as they are: the plugin may hold one of them and not the next, and a delta
    that begins before what it holds and ends after it fits nowhere. Calls that are made later carry all.
    """
    whole, size = state_pb2.Delta(), 0
    for delta in deltas:
        more = delta.ByteSize()
        if whole.generation and (whole.generation <= carried_to or size + more > CHUNK_BYTES):
            yield whole
            whole = state_pb2.Delta()
        if not whole.generation:
            whole.base_generation, size = delta.base_generation, 0
        whole.generation, whole.node_count = delta.generation, delta.node_count
        whole.changes.extend(delta.changes)
        size += more
    if whole.generation:
        yield whole


@asynccontextmanager
async def deadline(plugin: str, seconds: float | None, otherwise: str) -> AsyncIterator[None]:
    """Raises: NotConnectedError with that text where it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise NotConnectedError(plugin, f"{otherwise} within {seconds:g} s") from None
