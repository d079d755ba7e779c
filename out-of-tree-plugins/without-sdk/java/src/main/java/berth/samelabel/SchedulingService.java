package berth.samelabel;

import berth.plugin.v1.Common.Call;
import berth.plugin.v1.Common.Code;
import berth.plugin.v1.Common.PodRef;
import berth.plugin.v1.Common.Reason;
import berth.plugin.v1.Scheduling.Candidates;
import berth.plugin.v1.Scheduling.FilterRequest;
import berth.plugin.v1.Scheduling.FilterResponse;
import berth.plugin.v1.Scheduling.FilterScoreRequest;
import berth.plugin.v1.Scheduling.FilterScoreResponse;
import berth.plugin.v1.Scheduling.Normalization;
import berth.plugin.v1.Scheduling.ScoreRequest;
import berth.plugin.v1.Scheduling.ScoreResponse;
import berth.plugin.v1.Scheduling.Scores;
import berth.plugin.v1.Scheduling.Verdicts;
import berth.plugin.v1.SchedulingServiceGrpc;
import com.google.gson.JsonParseException;
import com.google.protobuf.ByteString;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A pod goes to nodes whose label has the value that its own label of that key has. Nodes without
 * the label are open to all pods; nodes with the pod's own value are better.
 */
final class SchedulingService extends SchedulingServiceGrpc.SchedulingServiceImplBase {
    private static final byte PASSES = 0;

    /** Verdicts are rows of the reason table, counted from 1. */
    private static final byte OTHER_VALUE = 1;

    private static final byte BEST = 100;

    private final Session session;

    SchedulingService(Session session) {
        this.session = session;
    }

    /** What is found for each node of a generation. */
    private record Answer(long generation, byte[] verdicts, byte[] scores, boolean anyPasses) {}

    private Answer answer(Call call, Candidates candidates) {
        synchronized (session) {
            String label = session.labelOf(call.getProfile());
            Held held = session.stateFor(call);
            String wanted = labelsOf(call.getPod()).get(label);
            int count = held.nodes.size();
            checkLength(candidates, count);
            byte[] verdicts = new byte[count];
            byte[] scores = new byte[count];
            boolean anyPasses = false;
            for (int index = 0; index < count; index++) {
                String value = held.nodes.get(index).labels().get(label);
                verdicts[index] = value == null || value.equals(wanted) ? PASSES : OTHER_VALUE;
                scores[index] = value != null && value.equals(wanted) ? BEST : 0;
                anyPasses |= verdicts[index] == PASSES && isAsked(candidates, index);
            }
            return new Answer(held.generation, verdicts, scores, anyPasses);
        }
    }

    /** Reads the pod. None is kept: the host sends it again where a call came without it. */
    private static Map<String, String> labelsOf(PodRef pod) {
        if (!pod.hasObject()) {
            throw Session.precondition("POD_UNKNOWN", "the pod's object is needed");
        }
        try {
            return Labels.of(pod.getObject());
        } catch (JsonParseException error) {
            throw Status.INVALID_ARGUMENT.withDescription(error.getMessage()).asRuntimeException();
        }
    }

    private static void checkLength(Candidates candidates, int count) {
        if (candidates != null && candidates.getBitmap().size() != (count + 7) / 8) {
            throw Status.INVALID_ARGUMENT
                    .withDescription("a bitmap for another number of nodes")
                    .asRuntimeException();
        }
    }

    private static boolean isAsked(Candidates candidates, int index) {
        return candidates == null || (candidates.getBitmap().byteAt(index / 8) >> index % 8 & 1) == 1;
    }

    @Override
    public void filter(FilterRequest request, StreamObserver<FilterResponse> answers) {
        Candidates candidates = request.hasCandidates() ? request.getCandidates() : null;
        reply(answers, () -> filterOf(answer(request.getCall(), candidates)));
    }

    @Override
    public void score(ScoreRequest request, StreamObserver<ScoreResponse> answers) {
        Candidates candidates = request.hasCandidates() ? request.getCandidates() : null;
        reply(answers, () -> scoreOf(answer(request.getCall(), candidates)));
    }

    @Override
    public void filterScore(FilterScoreRequest request, StreamObserver<FilterScoreResponse> answers) {
        Candidates candidates = request.hasCandidates() ? request.getCandidates() : null;
        reply(
                answers,
                () -> {
                    Answer answer = answer(request.getCall(), candidates);
                    var response = FilterScoreResponse.newBuilder().setFilter(filterOf(answer));
                    if (answer.anyPasses) {
                        response.setScore(scoreOf(answer));
                    }
                    return response.build();
                });
    }

    private static <T> void reply(StreamObserver<T> answers, Supplier<T> answer) {
        T response;
        try {
            response = answer.get();
        } catch (StatusRuntimeException error) {
            answers.onError(error);
            return;
        }
        answers.onNext(response);
        answers.onCompleted();
    }

    private static FilterResponse filterOf(Answer answer) {
        Reason.Builder reason =
                Reason.newBuilder()
                        .setCode(Code.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)
                        .setText("node(s) had another value of the pod's label");
        Verdicts.Builder verdicts =
                Verdicts.newBuilder().setEach(ByteString.copyFrom(answer.verdicts)).addReasons(reason);
        return FilterResponse.newBuilder()
                .setGeneration(answer.generation)
                .setStatus(success())
                .setVerdicts(verdicts)
                .build();
    }

    private static ScoreResponse scoreOf(Answer answer) {
        Scores.Builder scores =
                Scores.newBuilder()
                        .setUint8(ByteString.copyFrom(answer.scores))
                        .setNormalization(Normalization.NORMALIZATION_NONE);
        return ScoreResponse.newBuilder()
                .setGeneration(answer.generation)
                .setStatus(success())
                .setScores(scores)
                .build();
    }

    private static berth.plugin.v1.Common.Status success() {
        return berth.plugin.v1.Common.Status.newBuilder().setCode(Code.CODE_SUCCESS).build();
    }
}
