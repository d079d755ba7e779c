"""Broken calls over ttrpc."""

from berth_plugin_proto import scheduling_pb2, ttrpc_pb2
from berth_sdk.ttrpc import MAX_BYTES, Connection
from tests.unit.conformance.broken import BrokenServer, Fault
from tests.unit.conformance.faults_of_calls import asked_together, passes


class NotServed(BrokenServer):
    async def start(self):
        await super().start()
        self._ttrpc._server.close()
        self._ttrpc.path.unlink()


def over(connection):
    """A server whose second socket has connections of that kind."""

    class OtherFrames(BrokenServer):
        async def start(self):
            await super().start()
            self._ttrpc._connection = connection

    return Fault(server=OtherFrames)


class LetsPass(Connection):
    def _answer(self, stream, response, ends):
        if isinstance(response, scheduling_pb2.FilterResponse):
            passes(response)
        super()._answer(stream, response, ends)


class Muddles(Connection):
    """Answers are others where several are asked for together."""

    def _answer(self, stream, response, ends):
        if asked_together() and isinstance(response, scheduling_pb2.FilterResponse):
            passes(response)
        super()._answer(stream, response, ends)


class LosesDeltas(Connection):
    def _take(self, stream, frame):
        if frame.method == "Filter":
            request = scheduling_pb2.FilterRequest.FromString(frame.payload)
            del request.call.deltas[:]
            frame.payload = request.SerializeToString()
        super()._take(stream, frame)


class GivesNoReason(Connection):
    def _refuse(self, stream, failure):
        super()._refuse(stream, failure._replace(reason=""))


class AnswersAnything(Connection):
    def _take(self, stream, frame):
        if frame.method == "NoSuchCall":
            self._answer(stream, scheduling_pb2.FilterResponse(), None)
        else:
            super()._take(stream, frame)


class OneAtATime(Connection):
    """A call that waits holds up the others, however long."""

    def _take(self, stream, frame):
        if not self.waiting:
            super()._take(stream, frame)

    def _wait(self, stream, name, task, _):
        super()._wait(stream, name, task, None)


class AllOrNone(Connection):
    def close(self):
        for connection in list(self._connections):
            connection._transport.abort()


class ReadsAnySize(Connection):
    def data_received(self, data):
        if int.from_bytes(data[:4]) == MAX_BYTES + 1:
            self._write(1, ttrpc_pb2.TtrpcResponse().SerializeToString() or b"\x12\x00")
        else:
            super().data_received(data)


FAULTS = {
    "ttrpc/answer": Fault(server=NotServed),
    "ttrpc/same": over(LetsPass),
    "ttrpc/many": over(Muddles),
    "ttrpc/deltas": over(LosesDeltas),
    "ttrpc/refusal": over(GivesNoReason),
    "ttrpc/unknown-method": over(AnswersAnything),
    "ttrpc/deadline": over(OneAtATime),
    "ttrpc/broken-frame": over(AllOrNone),
    "ttrpc/large-frame": over(ReadsAnySize),
}
