"""StateService: follow the host's state stream.

    waiting for Begin --begin, full--> transferring --commit--> following
           |   ^                                                 |  ^
           |   +------------------- Nack ------------------------+  |
           +-----------------------begin, resume--------------------+

The stream opened last is the one that counts; older ones end.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum, auto

from berth_plugin_proto import state_pb2 as pb
from berth_sdk.errors import SyncError
from berth_sdk.session import Session
from berth_sdk.state import Step, decode


class Stage(Enum):
    """Where a stream is."""

    WAITING = auto()
    TRANSFERRING = auto()
    FOLLOWING = auto()


@dataclass
class Stream:
    """One Sync stream's place in the protocol."""

    session: Session
    stage: Stage = Stage.WAITING
    epoch: str = ""
    steps: list[Step] = field(default_factory=list)
    timed: bool = False
    """Whether the host has said the time on this stream."""

    async def answer(self, request: pb.SyncRequest) -> pb.SyncResponse | None:
        """Take one message; Ack, Nack, or None where there is nothing to say."""
        held = self.session.mirror.generation
        try:
            response = self._take(request)
        except SyncError as error:
            self.session.mirror.drop()
            self.stage = Stage.WAITING
            self.steps = []
            self.session.meter.refused(pb.NackReason.Name(error.reason).removeprefix("NACK_REASON_"))
            response = _nack(request, error)
        if self.session.mirror.generation != held:
            self.session.announce()
        return response

    def _take(self, request: pb.SyncRequest) -> pb.SyncResponse | None:
        match request.WhichOneof("body"), self.stage:
            case "time", _ if self.session.plugin.uses_clock:
                return self._time(request.time.unix_micros)
            case "begin", _:
                return self._begin(request.begin)
            case "chunk", Stage.TRANSFERRING:
                self.steps += decode(request.chunk.changes, self.session.remembered)
                return None
            case "commit", Stage.TRANSFERRING:
                return self._commit(request.commit)
            case "delta", Stage.FOLLOWING:
                self.session.mirror.follow(request.delta)
                return self._ack()
            case body, stage:
                text = f"{body} does not belong into the stage {stage.name}"
                raise SyncError(pb.NACK_REASON_OUT_OF_ORDER, text)

    def _begin(self, begin: pb.Begin) -> pb.SyncResponse | None:
        if not begin.epoch:
            raise SyncError(pb.NACK_REASON_OUT_OF_ORDER, "an epoch needs a name")
        if not self.timed:
            self.session.plugin.clock.own()
        self.epoch, self.steps = begin.epoch, []
        if not begin.HasField("resume_generation"):
            self.stage = Stage.TRANSFERRING
            return None
        mirror = self.session.mirror
        if begin.epoch != mirror.epoch or not 0 < begin.resume_generation <= mirror.generation:
            text = f"{mirror.generation} of epoch {mirror.epoch!r} is held"
            raise SyncError(pb.NACK_REASON_CANNOT_RESUME, text)
        self.stage = Stage.FOLLOWING
        return self._ack()

    def _time(self, unix_micros: int) -> pb.SyncResponse:
        self.timed = True
        clock, requeue = self.session.plugin.clock, self.session.plugin.requeue
        clock.reach(unix_micros)
        reached = pb.TimeReached(
            unix_micros=unix_micros,
            wake_at_unix_micros=clock.next_due_micros(),
            last_requeue=requeue.last_number,
        )
        return pb.SyncResponse(time_reached=reached)

    def _commit(self, commit: pb.Commit) -> pb.SyncResponse:
        if commit.generation < 1:
            raise SyncError(pb.NACK_REASON_OUT_OF_ORDER, "generations start at 1")
        self.session.mirror.replace(self.epoch, commit, self.steps)
        self.stage, self.steps = Stage.FOLLOWING, []
        return self._ack()

    def _ack(self) -> pb.SyncResponse:
        return pb.SyncResponse(ack=pb.Ack(generation=self.session.mirror.generation))


async def sync(session: Session, requests: AsyncIterator[pb.SyncRequest]) -> AsyncIterator[pb.SyncResponse]:
    """Say what is held, then follow, until a newer stream takes over."""
    stream = Stream(session)
    session.stream = stream
    yield pb.SyncResponse(held=pb.Held(epoch=session.mirror.epoch, generation=session.mirror.generation))
    async for request in requests:
        if session.stream is not stream:
            return
        response = await stream.answer(request)
        if response is not None:
            yield response


def _nack(request: pb.SyncRequest, error: SyncError) -> pb.SyncResponse:
    body = request.WhichOneof("body")
    generation = getattr(request, body).generation if body in {"commit", "delta"} else 0
    return pb.SyncResponse(nack=pb.Nack(generation=generation, reason=error.reason, message=str(error)))
