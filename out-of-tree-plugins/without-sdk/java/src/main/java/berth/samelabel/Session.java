package berth.samelabel;

import berth.plugin.v1.Common.Call;
import berth.plugin.v1.State.Delta;
import berth.plugin.v1.State.NackReason;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.protobuf.services.HealthStatusManager;
import java.util.HashMap;
import java.util.Map;

/** What all services of the process share. Everything is read and changed under its monitor. */
final class Session {
    private static final String READINESS = "berth.plugin.v1.SchedulingService";
    private static final Metadata.Key<String> REASON =
            Metadata.Key.of("berth-reason", Metadata.ASCII_STRING_MARSHALLER);

    final HealthStatusManager health = new HealthStatusManager();

    /** The label that each profile's arguments name. */
    final Map<String, String> labels = new HashMap<>();

    /** The Sync stream that was opened last, the only one that counts. */
    Object stream;

    private Held held = new Held();

    Session() {
        changed();
    }

    Held held() {
        return held;
    }

    void hold(Held state) {
        held = state;
        changed();
    }

    /** Wakes the calls that wait for a generation, and reports whether calls can be answered. */
    synchronized void changed() {
        boolean ready = !labels.isEmpty() && held.generation > 0;
        health.setStatus(READINESS, ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);
        notifyAll();
    }

    /** Returns the label that the profile's arguments name. */
    String labelOf(String profile) {
        String label = labels.get(profile);
        if (label == null) {
            throw precondition("NOT_CONFIGURED", "the profile was not configured");
        }
        return label;
    }

    /** Waits for the call's generation, until gRPC cancels the call at its deadline. */
    Held stateFor(Call call) {
        takeOver(call);
        Context context = Context.current();
        Context.CancellationListener wake = cancelled -> changed();
        context.addListener(wake, Runnable::run);
        try {
            while (held.epoch.equals(call.getEpoch()) && held.generation < call.getGeneration()) {
                if (context.isCancelled()) {
                    throw Status.CANCELLED.asRuntimeException();
                }
                wait();
            }
        } catch (InterruptedException error) {
            throw Status.CANCELLED.withCause(error).asRuntimeException();
        } finally {
            context.removeListener(wake);
        }
        if (held.generation == 0 || !held.epoch.equals(call.getEpoch())) {
            throw precondition("NOT_SYNCED", "another epoch is held, or none");
        }
        if (call.getGeneration() < held.indicesSince) {
            throw precondition("GENERATION_GONE", "nodes have other indices now");
        }
        return held;
    }

    /** Takes the steps that the call brings. After a gap the stream will bring what is missing. */
    private void takeOver(Call call) {
        if (call.getDeltasCount() == 0 || !held.epoch.equals(call.getEpoch())) {
            return;
        }
        try {
            for (Delta delta : call.getDeltasList()) {
                held.follow(delta);
            }
        } catch (RefusedException error) {
            if (error.reason != NackReason.NACK_REASON_GAP) {
                hold(new Held());
                throw precondition("NOT_SYNCED", error.getMessage());
            }
        }
        changed();
    }

    /** Builds the status that says what the host has to do before it repeats the call. */
    static StatusRuntimeException precondition(String reason, String message) {
        Metadata trailers = new Metadata();
        trailers.put(REASON, reason);
        return Status.FAILED_PRECONDITION.withDescription(message).asRuntimeException(trailers);
    }
}
