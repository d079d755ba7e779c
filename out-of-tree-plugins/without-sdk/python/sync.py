"""StateService: follow the host's state stream."""

from collections.abc import Iterator
from enum import Enum, auto

import grpc
from held import Held, RefusedError
from session import Session

from berth.plugin.v1 import state_pb2 as pb
from berth.plugin.v1 import state_pb2_grpc


class Stage(Enum):
    """What a stream expects next."""

    WAITING = auto()
    TRANSFERRING = auto()
    FOLLOWING = auto()


class Stream:
    """One Sync stream's place in the protocol."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stage = Stage.WAITING
        self._epoch = ""
        self._changes: list[pb.Change] = []

    def answer(self, request: pb.SyncRequest) -> pb.SyncResponse | None:
        """Take one message; Ack, Nack, or None where there is nothing to say."""
        try:
            acknowledged = self._take(request)
        except RefusedError as error:
            self._stage = Stage.WAITING
            self._session.held = Held()
            generation = (request.delta if request.HasField("delta") else request.commit).generation
            nack = pb.Nack(generation=generation, reason=error.reason, message=str(error))
            return pb.SyncResponse(nack=nack)
        finally:
            self._session.changed()
        ack = pb.Ack(generation=self._session.held.generation)
        return pb.SyncResponse(ack=ack) if acknowledged else None

    def _take(self, request: pb.SyncRequest) -> bool:
        """Take one message; True if it is acknowledged."""
        match request.WhichOneof("body"), self._stage:
            case "begin", _:
                return self._begin(request.begin)
            case "chunk", Stage.TRANSFERRING:
                self._changes += request.chunk.changes
                return False
            case "commit", Stage.TRANSFERRING:
                self._session.held = Held.transferred(self._epoch, request.commit, self._changes)
                self._stage, self._changes = Stage.FOLLOWING, []
                return True
            case "delta", Stage.FOLLOWING:
                self._session.held.follow(request.delta)
                return True
            case _:
                raise RefusedError(pb.NACK_REASON_OUT_OF_ORDER, "the message does not belong here")

    def _begin(self, begin: pb.Begin) -> bool:
        self._epoch, self._changes = begin.epoch, []
        if not begin.HasField("resume_generation"):
            self._stage = Stage.TRANSFERRING
            return False
        held = self._session.held
        if begin.epoch != held.epoch or not 0 < begin.resume_generation <= held.generation:
            raise RefusedError(pb.NACK_REASON_CANNOT_RESUME, "that is not held")
        self._stage = Stage.FOLLOWING
        return True


class State(state_pb2_grpc.StateServiceServicer):
    """Follows streams, of which the newest counts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def Sync(  # noqa: N802 - gRPC's name
        self, request_iterator: Iterator[pb.SyncRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.SyncResponse]:
        """Say what is held, then follow, until a newer stream takes over."""
        del context
        stream = Stream(self._session)
        with self._session.moved:
            self._session.stream = stream
            held = self._session.held
            first = pb.Held(epoch=held.epoch, generation=held.generation)
        yield pb.SyncResponse(held=first)
        for request in request_iterator:
            with self._session.moved:
                if self._session.stream is not stream:
                    return
                answer = stream.answer(request)
            if answer is not None:
                yield answer
