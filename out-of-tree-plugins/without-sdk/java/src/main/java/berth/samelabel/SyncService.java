package berth.samelabel;

import berth.plugin.v1.State.Ack;
import berth.plugin.v1.State.Begin;
import berth.plugin.v1.State.Change;
import berth.plugin.v1.State.Commit;
import berth.plugin.v1.State.Nack;
import berth.plugin.v1.State.NackReason;
import berth.plugin.v1.State.SyncRequest;
import berth.plugin.v1.State.SyncResponse;
import berth.plugin.v1.StateServiceGrpc;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;

/** Follows the host's state stream. */
final class SyncService extends StateServiceGrpc.StateServiceImplBase {
    private enum Stage {
        WAITING,
        TRANSFERRING,
        FOLLOWING,
        ENDED
    }

    private final Session session;

    SyncService(Session session) {
        this.session = session;
    }

    @Override
    public StreamObserver<SyncRequest> sync(StreamObserver<SyncResponse> answers) {
        Stream stream = new Stream(answers);
        synchronized (session) {
            session.stream = stream;
            Held held = session.held();
            answers.onNext(
                    SyncResponse.newBuilder()
                            .setHeld(
                                    berth.plugin.v1.State.Held.newBuilder()
                                            .setEpoch(held.epoch)
                                            .setGeneration(held.generation))
                            .build());
        }
        return stream;
    }

    private final class Stream implements StreamObserver<SyncRequest> {
        private final StreamObserver<SyncResponse> answers;
        private Stage stage = Stage.WAITING;
        private String epoch = "";
        private List<Change> changes = new ArrayList<>();

        Stream(StreamObserver<SyncResponse> answers) {
            this.answers = answers;
        }

        @Override
        public void onNext(SyncRequest request) {
            synchronized (session) {
                if (session.stream != this) {
                    onCompleted(); // The host has opened another one since.
                    return;
                }
                try {
                    if (take(request)) {
                        Ack ack = Ack.newBuilder().setGeneration(session.held().generation).build();
                        answers.onNext(SyncResponse.newBuilder().setAck(ack).build());
                    }
                } catch (RefusedException error) {
                    stage = Stage.WAITING;
                    session.hold(new Held());
                    answers.onNext(nack(request, error));
                }
            }
        }

        /** Takes one message, and says whether it is acknowledged. */
        private boolean take(SyncRequest request) throws RefusedException {
            switch (request.getBodyCase()) {
                case BEGIN:
                    return begin(request.getBegin());
                case CHUNK:
                    expect(Stage.TRANSFERRING);
                    changes.addAll(request.getChunk().getChangesList());
                    return false;
                case COMMIT:
                    expect(Stage.TRANSFERRING);
                    Commit commit = request.getCommit();
                    session.hold(new Held(epoch, commit.getGeneration(), changes, commit.getNodeCount()));
                    changes = new ArrayList<>();
                    stage = Stage.FOLLOWING;
                    return true;
                case DELTA:
                    expect(Stage.FOLLOWING);
                    session.held().follow(request.getDelta());
                    session.changed();
                    return true;
                default:
                    throw new RefusedException(NackReason.NACK_REASON_OUT_OF_ORDER, "an unknown message");
            }
        }

        private boolean begin(Begin begin) throws RefusedException {
            epoch = begin.getEpoch();
            changes = new ArrayList<>();
            if (!begin.hasResumeGeneration()) {
                stage = Stage.TRANSFERRING;
                return false;
            }
            long from = begin.getResumeGeneration();
            Held held = session.held();
            if (!epoch.equals(held.epoch) || from < 1 || from > held.generation) {
                throw new RefusedException(NackReason.NACK_REASON_CANNOT_RESUME, "that is not held");
            }
            stage = Stage.FOLLOWING;
            return true;
        }

        private void expect(Stage wanted) throws RefusedException {
            if (stage != wanted) {
                throw new RefusedException(NackReason.NACK_REASON_OUT_OF_ORDER, "not in stage " + stage);
            }
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {
            if (stage != Stage.ENDED) {
                stage = Stage.ENDED;
                answers.onCompleted();
            }
        }
    }

    private static SyncResponse nack(SyncRequest request, RefusedException error) {
        long generation =
                switch (request.getBodyCase()) {
                    case COMMIT -> request.getCommit().getGeneration();
                    case DELTA -> request.getDelta().getGeneration();
                    default -> 0;
                };
        Nack.Builder nack =
                Nack.newBuilder()
                        .setGeneration(generation)
                        .setReason(error.reason)
                        .setMessage(error.getMessage());
        return SyncResponse.newBuilder().setNack(nack).build();
    }
}
