package dev.berth.plugin.testing;

import berth.plugin.v1.State;
import berth.plugin.v1.StateServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The host's side of the state stream. */
final class Stream {
  private final BlockingQueue<Object> answers = new LinkedBlockingQueue<>();
  private final StreamObserver<State.SyncRequest> requests;

  Stream(ManagedChannel channel) {
    requests =
        StateServiceGrpc.newStub(channel)
            .sync(
                new StreamObserver<>() {
                  @Override
                  public void onNext(State.SyncResponse answer) {
                    answers.add(answer);
                  }

                  @Override
                  public void onError(Throwable problem) {
                    answers.add(problem);
                  }

                  @Override
                  public void onCompleted() {
                    answers.add("the stream ended");
                  }
                });
  }

  void send(State.SyncRequest request) {
    requests.onNext(request);
  }

  void close() {
    requests.onCompleted();
  }

  State.Held held() {
    return heard().getHeld();
  }

  void acknowledged(long generation) {
    State.SyncResponse answer = heard();
    if (answer.getAck().getGeneration() < generation) {
      throw new AssertionError("expected an Ack of generation " + generation + ", got " + answer);
    }
  }

  State.TimeReached reached(long unixMicros) {
    State.SyncResponse answer = heard();
    if (!answer.hasTimeReached() || answer.getTimeReached().getUnixMicros() != unixMicros) {
      throw new AssertionError("expected TimeReached of " + unixMicros + ", got " + answer);
    }
    return answer.getTimeReached();
  }

  private State.SyncResponse heard() {
    try {
      Object answer = answers.poll(Host.PATIENCE_SECONDS, TimeUnit.SECONDS);
      if (answer instanceof State.SyncResponse known) {
        return known;
      }
      throw new AssertionError("expected an answer on Sync, got " + answer);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
