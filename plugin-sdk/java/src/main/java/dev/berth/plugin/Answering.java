package dev.berth.plugin;

import berth.plugin.v1.Common;
import com.google.protobuf.Message;
import io.grpc.Status;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import java.util.Map;
import java.util.function.Function;

/** Answers requests in their turn, each within a span of its own. */
final class Answering {
  final Session session;
  private final Tracing tracing;

  Answering(Session session, Tracing tracing) {
    this.session = session;
    this.tracing = tracing;
  }

  /** How a request came: its place, its limit, and its trace context. */
  record Arrival(Place here, Patience patience, String system, Map<String, String> carrier) {}

  /**
   * Answers a call about an attempt.
   *
   * @throws CallException why it was not answered
   */
  <Q extends Message, R extends Message> R answer(
      Method<Q, R> method, Message request, Arrival arrival) {
    Q known = method.cast(request);
    Common.Call head = method.head().apply(known);
    return inTurn(
        method.name(),
        arrival,
        span -> {
          if (!head.hasPod()) {
            throw CallException.invalid(method.name() + ": the call names no pod");
          }
          Call.CURRENT.set(new Call(session.profile(head.getProfile()), PodKey.of(head.getPod())));
          Asked asked = new Asked(session, head, arrival.here, arrival.patience, span);
          return method.function().apply(asked, known);
        });
  }

  /** Answers a call about the queue, likewise. */
  Message answer(QueueMethod<?, ?> method, Message request, Arrival arrival) {
    return inTurn(method.name(), arrival, span -> method.answer(session, request));
  }

  /** Answers anything in its turn. */
  <R> R inTurn(String name, Arrival arrival, Function<Span, R> function) {
    long started = System.nanoTime();
    Span span = tracing.start(session.traits.name + "/" + name, arrival.carrier);
    Status.Code code = Status.Code.OK;
    try {
      arrival.here.enter(arrival.patience);
      Place.CURRENT.set(arrival.here);
      R response = function.apply(span);
      if (span.isRecording()) {
        span.setAttribute("berth.plugin", session.traits.name);
        span.setAttribute("berth.generation", session.mirror.generation);
      }
      return response;
    } catch (RuntimeException e) {
      CallException failed = CallException.of(e);
      code = failed.code;
      span.setStatus(StatusCode.ERROR, failed.getMessage());
      throw failed;
    } finally {
      Place.CURRENT.remove();
      Call.CURRENT.remove();
      arrival.here.leave();
      describe(span, arrival.system, name, code);
      span.end();
      session.meter.answered(name, code, (System.nanoTime() - started) / 1e9);
    }
  }

  private static String service(String name) {
    if (QueueMethod.ALL.containsKey(name)) {
      return "QueueingService";
    }
    if (Method.PLACEMENT.containsKey(name)) {
      return "PlacementService";
    }
    if (Method.GROUP.containsKey(name)) {
      return "GroupService";
    }
    return Method.ALL.containsKey(name) ? "SchedulingService" : "IdentityService";
  }

  /**
   * What was called and how it ended, by OpenTelemetry's semantic conventions 1.44 for RPC servers.
   */
  private static void describe(Span span, String system, String name, Status.Code code) {
    if (!span.isRecording()) {
      return;
    }
    span.setAttribute("rpc.system.name", system);
    span.setAttribute("rpc.method", "berth.plugin.v1." + service(name) + "/" + name);
    span.setAttribute("rpc.response.status_code", code.name());
    if (code != Status.Code.OK) {
      span.setAttribute("error.type", code.name());
    }
  }
}
