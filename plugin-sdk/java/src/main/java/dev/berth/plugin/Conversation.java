package dev.berth.plugin;

import berth.plugin.v1.Scheduling.CallError;
import berth.plugin.v1.Scheduling.ConverseRequest;
import berth.plugin.v1.Scheduling.ConverseResponse;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;

/**
 * One Converse stream. Calls are answered side by side, each as soon as it has its answer; the
 * author's methods see them in the order of the stream.
 */
final class Conversation implements StreamObserver<ConverseRequest> {
  private final Answering answering;
  private final Executor executor;
  private final StreamObserver<ConverseResponse> responses;
  private final Set<Patience> running = new HashSet<>();
  private boolean closed;
  private CallException end;

  Conversation(Answering answering, Executor executor, StreamObserver<ConverseResponse> responses) {
    this.answering = answering;
    this.executor = executor;
    this.responses = responses;
  }

  @Override
  public void onNext(ConverseRequest request) {
    begin(request);
    request.getAlsoList().forEach(this::begin);
  }

  private synchronized void begin(ConverseRequest request) {
    if (closed) {
      return;
    }
    Patience patience = patience(request);
    Place here = new Place(answering.session.line, null);
    running.add(patience);
    executor.execute(
        () -> reply(request, new Answering.Arrival(here, patience, "grpc", carrier(request))));
  }

  private static Patience patience(ConverseRequest request) {
    if (!request.hasTimeout()) {
      return Patience.nanos(0);
    }
    long seconds = request.getTimeout().getSeconds();
    return Patience.nanos(Math.max(1, seconds * 1_000_000_000L + request.getTimeout().getNanos()));
  }

  private static Map<String, String> carrier(ConverseRequest request) {
    return request.hasTraceparent() ? Map.of("traceparent", request.getTraceparent()) : Map.of();
  }

  private void reply(ConverseRequest request, Answering.Arrival arrival) {
    ConverseResponse.Builder made = ConverseResponse.newBuilder();
    try {
      answer(request, arrival, made);
    } catch (CallException e) {
      CallError.Builder error = CallError.newBuilder().setCode(e.code.value());
      made.setError(error.setReason(e.reason).setMessage(e.text()));
    }
    ConverseResponse response = made.setId(request.getId()).build();
    synchronized (this) {
      running.remove(arrival.patience());
      responses.onNext(response);
      finish();
    }
  }

  private void answer(
      ConverseRequest request, Answering.Arrival arrival, ConverseResponse.Builder made) {
    FieldDescriptor asked =
        ConverseRequest.getDescriptor().findFieldByNumber(request.getCallCase().getNumber());
    Method<?, ?> method = asked == null ? null : Method.ALL.get(nameOf(asked));
    if (method == null) {
      arrival.here().enter(arrival.patience());
      arrival.here().leave();
      throw new CallException(Status.Code.UNIMPLEMENTED, "no such call");
    }
    Message answer = answering.answer(method, (Message) request.getField(asked), arrival);
    made.setField(ConverseResponse.getDescriptor().findFieldByNumber(asked.getNumber()), answer);
  }

  private static String nameOf(FieldDescriptor call) {
    return call.getMessageType().getName().replaceFirst("Request$", "");
  }

  /** Begins nothing any more, and ends the stream with that once nothing runs. */
  synchronized void close(CallException problem) {
    if (!closed) {
      closed = true;
      end = problem;
      finish();
    }
  }

  private void finish() {
    if (!closed || !running.isEmpty()) {
      return;
    }
    if (end == null) {
      responses.onCompleted();
    } else {
      responses.onError(end.forGrpc());
    }
  }

  /** The host hung up: what waits need not. */
  @Override
  public synchronized void onError(Throwable problem) {
    running.forEach(Patience::cancel);
  }

  @Override
  public void onCompleted() {
    close(null);
  }
}
