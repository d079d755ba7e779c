"""What all services of the process share: profiles, the state that is held, readiness."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

import grpc
from grpc_health.v1 import health, health_pb2
from held import Held, RefusedError

from berth.plugin.v1 import common_pb2, state_pb2

READINESS = "berth.plugin.v1.SchedulingService"


@dataclass
class Session:
    """Everything is read and changed while `moved` is held."""

    health: health.HealthServicer
    labels: dict[str, str] = field(default_factory=dict)
    """The label that each profile's arguments name."""
    held: Held = field(default_factory=Held)
    stream: object = None
    """The Sync stream that was opened last, the only one that counts."""
    moved: threading.Condition = field(default_factory=threading.Condition)

    def changed(self) -> None:
        """Wake the calls that wait for a generation, and report whether calls can be answered."""
        status = health_pb2.HealthCheckResponse
        ready = bool(self.labels and self.held.generation)
        self.health.set(READINESS, status.SERVING if ready else status.NOT_SERVING)
        self.moved.notify_all()

    def label_of(self, profile: str, context: grpc.ServicerContext) -> str:
        """Return the label that the profile's arguments name."""
        if profile not in self.labels:
            refuse(context, "NOT_CONFIGURED", "the profile was not configured")
        return self.labels[profile]

    def wait_for(self, call: common_pb2.Call, context: grpc.ServicerContext) -> None:
        """Return when the call can be answered from what is held."""
        self._take_over(call.epoch, call.deltas, context)
        context.add_callback(self._wake)
        while self.held.epoch == call.epoch and self.held.generation < call.generation:
            if not context.is_active():
                context.abort(grpc.StatusCode.CANCELLED, "the caller has gone")
            self.moved.wait()
        if not self.held.generation or self.held.epoch != call.epoch:
            refuse(context, "NOT_SYNCED", "another epoch is held, or none")
        if call.generation < self.held.indices_since:
            refuse(context, "GENERATION_GONE", "nodes have other indices now")

    def _wake(self) -> None:
        with self.moved:
            self.moved.notify_all()

    def _take_over(
        self, epoch: str, deltas: Iterable[state_pb2.Delta], context: grpc.ServicerContext
    ) -> None:
        """Take the steps that the call brings. After a gap the stream will bring what is missing."""
        if not deltas or self.held.epoch != epoch:
            return
        try:
            for delta in deltas:
                self.held.follow(delta)
        except RefusedError as error:
            if error.reason != state_pb2.NACK_REASON_GAP:
                self.held = Held()
                self.changed()
                refuse(context, "NOT_SYNCED", str(error))
        self.changed()


def refuse(context: grpc.ServicerContext, reason: str, message: str) -> NoReturn:
    """End the call; the reason says what the host has to do before it repeats it."""
    context.set_trailing_metadata((("berth-reason", reason),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, message)
