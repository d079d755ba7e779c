"""SchedulingService: a pod goes to nodes whose label has the value that its own label of that key has.

Nodes without the label are open to all pods; nodes with the pod's own value are better.
"""

from dataclasses import dataclass

import grpc
from held import labels_of
from session import Session, refuse

from berth.plugin.v1 import common_pb2, scheduling_pb2_grpc
from berth.plugin.v1 import scheduling_pb2 as pb

PASSES = 0
OTHER_VALUE = 1
"""Verdicts are rows of the reason table, counted from 1."""
BEST = 100
SUCCESS = common_pb2.Status(code=common_pb2.CODE_SUCCESS)
REASON = common_pb2.Reason(
    code=common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, text="node(s) had another value of the pod's label"
)
Request = pb.FilterRequest | pb.ScoreRequest | pb.FilterScoreRequest


@dataclass
class Answer:
    """What is found for each node of a generation."""

    generation: int
    verdicts: bytes
    scores: bytes
    any_passes: bool
    """Whether a node that was asked about passes."""

    def filter(self) -> pb.FilterResponse:
        """Return the verdicts."""
        verdicts = pb.Verdicts(each=self.verdicts, reasons=[REASON])
        return pb.FilterResponse(generation=self.generation, status=SUCCESS, verdicts=verdicts)

    def score(self) -> pb.ScoreResponse:
        """Return the scores."""
        scores = pb.Scores(uint8=self.scores, normalization=pb.NORMALIZATION_NONE)
        return pb.ScoreResponse(generation=self.generation, status=SUCCESS, scores=scores)


class Scheduling(scheduling_pb2_grpc.SchedulingServiceServicer):
    """Filters and scores; what is not announced is not called."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def Filter(  # noqa: N802 - gRPC's name
        self, request: pb.FilterRequest, context: grpc.ServicerContext
    ) -> pb.FilterResponse:
        """Say which nodes can take the pod."""
        return self._answer(request, context).filter()

    def Score(  # noqa: N802 - gRPC's name
        self, request: pb.ScoreRequest, context: grpc.ServicerContext
    ) -> pb.ScoreResponse:
        """Say how good the nodes are."""
        return self._answer(request, context).score()

    def FilterScore(  # noqa: N802 - gRPC's name
        self, request: pb.FilterScoreRequest, context: grpc.ServicerContext
    ) -> pb.FilterScoreResponse:
        """Say both."""
        answer = self._answer(request, context)
        score = answer.score() if answer.any_passes else None
        return pb.FilterScoreResponse(filter=answer.filter(), score=score)

    def _answer(self, request: Request, context: grpc.ServicerContext) -> Answer:
        call = request.call
        with self._session.moved:
            self._session.label_of(call.profile, context)
            self._session.wait_for(call, context)
            label = self._session.label_of(call.profile, context)
            wanted = _pod_labels(call.pod, context).get(label)
            generation = self._session.held.generation
            values = [node.labels.get(label) for node in self._session.held.nodes]
        asked = _asked_about(request, len(values), context)
        verdicts = bytes(PASSES if value in (None, wanted) else OTHER_VALUE for value in values)
        scores = bytes(BEST if value is not None and value == wanted else 0 for value in values)
        return Answer(generation, verdicts, scores, any(verdicts[i] == PASSES for i in asked))


def _pod_labels(pod: common_pb2.PodRef, context: grpc.ServicerContext) -> dict[str, str]:
    """Read the pod. None is kept: the host sends it again where a call came without it."""
    if not pod.HasField("object"):
        refuse(context, "POD_UNKNOWN", "the pod's object is needed")
    try:
        return labels_of(pod.object)
    except ValueError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the pod: {error}")


def _asked_about(request: Request, count: int, context: grpc.ServicerContext) -> list[int]:
    """Return the indices of the nodes that are asked about; without a bitmap, all."""
    if not request.HasField("candidates"):
        return list(range(count))
    bitmap = request.candidates.bitmap
    if len(bitmap) != -(-count // 8):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a bitmap for another number of nodes")
    return [index for index in range(count) if bitmap[index // 8] >> index % 8 & 1]
