package dev.berth.plugin;

import berth.plugin.v1.GroupServiceGrpc;
import berth.plugin.v1.Identity;
import berth.plugin.v1.IdentityServiceGrpc;
import berth.plugin.v1.PlacementServiceGrpc;
import berth.plugin.v1.Queueing;
import berth.plugin.v1.QueueingServiceGrpc;
import berth.plugin.v1.Scheduling;
import berth.plugin.v1.SchedulingServiceGrpc;
import berth.plugin.v1.State;
import berth.plugin.v1.StateServiceGrpc;
import com.google.protobuf.Message;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServiceDescriptor;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;

/** The services of the protocol over gRPC. */
final class Services {
  private static final Context.Key<Map<String, String>> CARRIER =
      Context.keyWithDefault("trace context", Map.of());
  private static final System.Logger LOG = System.getLogger("berth");

  private final Answering answering;
  private final Session session;
  private final Identity.HandshakeResponse introduction;
  private final ExecutorService executor;

  /** What ends each open stream when the plugin stops. */
  private final Set<Consumer<CallException>> streams = ConcurrentHashMap.newKeySet();

  Services(Answering answering, Identity.HandshakeResponse introduction, ExecutorService executor) {
    this.answering = answering;
    this.session = answering.session;
    this.introduction = introduction;
    this.executor = executor;
  }

  List<ServerServiceDefinition> definitions() {
    return List.of(identity(), state(), scheduling(), placement(), group(), queueing());
  }

  /** Ends the streams; calls that run are answered first. */
  void stop() {
    CallException stopping = new CallException(Status.Code.UNAVAILABLE, "the plugin is stopping");
    streams.forEach(each -> each.accept(stopping));
  }

  private ServerServiceDefinition identity() {
    return ServerServiceDefinition.builder(IdentityServiceGrpc.getServiceDescriptor())
        .addMethod(IdentityServiceGrpc.getHandshakeMethod(), unary(this::handshake))
        .addMethod(IdentityServiceGrpc.getConfigureMethod(), unary(this::configure))
        .build();
  }

  private Identity.HandshakeResponse handshake(Identity.HandshakeRequest request) {
    LOG.log(
        System.Logger.Level.INFO,
        "handshake with {0} {1}",
        request.getHostName(),
        request.getHostVersion());
    return introduction;
  }

  private Identity.ConfigureResponse configure(Identity.ConfigureRequest request) {
    List<String> problems =
        arrived(arrival -> answering.inTurn("Configure", arrival, s -> session.configure(request)));
    for (String problem : problems) {
      LOG.log(System.Logger.Level.ERROR, "profile {0}: {1}", request.getProfile(), problem);
    }
    return Identity.ConfigureResponse.newBuilder().addAllErrors(problems).build();
  }

  private ServerServiceDefinition state() {
    return ServerServiceDefinition.builder(StateServiceGrpc.getServiceDescriptor())
        .addMethod(StateServiceGrpc.getSyncMethod(), ServerCalls.asyncBidiStreamingCall(this::sync))
        .build();
  }

  private StreamObserver<State.SyncRequest> sync(StreamObserver<State.SyncResponse> responses) {
    Patience patience = Patience.nanos(0);
    SyncStream stream = new SyncStream(session, patience, responses);
    onEnd(responses, stream::end, patience::cancel);
    stream.open();
    return stream;
  }

  private ServerServiceDefinition scheduling() {
    return about(SchedulingServiceGrpc.getServiceDescriptor(), Method.ALL)
        .addMethod(
            SchedulingServiceGrpc.getConverseMethod(),
            ServerCalls.asyncBidiStreamingCall(this::converse))
        .build();
  }

  private ServerServiceDefinition placement() {
    return about(PlacementServiceGrpc.getServiceDescriptor(), Method.PLACEMENT).build();
  }

  private ServerServiceDefinition group() {
    return about(GroupServiceGrpc.getServiceDescriptor(), Method.GROUP).build();
  }

  /** The unary calls of a service about pods and their groups. */
  @SuppressWarnings({"unchecked", "rawtypes"}) // the descriptors' types are the table's
  private ServerServiceDefinition.Builder about(
      ServiceDescriptor service, Map<String, Method<?, ?>> methods) {
    ServerServiceDefinition.Builder made = ServerServiceDefinition.builder(service);
    for (MethodDescriptor each : service.getMethods()) {
      Method<?, ?> method = methods.get(each.getBareMethodName());
      if (method != null) {
        made.addMethod(each, unary(request -> answer(method, (Message) request)));
      }
    }
    return made;
  }

  private Message answer(Method<?, ?> method, Message request) {
    return arrived(arrival -> answering.answer(method, request, arrival));
  }

  private StreamObserver<Scheduling.ConverseRequest> converse(
      StreamObserver<Scheduling.ConverseResponse> responses) {
    Conversation talk = new Conversation(answering, executor, responses);
    onEnd(responses, talk::close, () -> talk.onError(null));
    return talk;
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // the descriptors' types are the table's
  private ServerServiceDefinition queueing() {
    ServerServiceDefinition.Builder made =
        ServerServiceDefinition.builder(QueueingServiceGrpc.getServiceDescriptor());
    for (MethodDescriptor each : QueueingServiceGrpc.getServiceDescriptor().getMethods()) {
      QueueMethod<?, ?> method = QueueMethod.ALL.get(each.getBareMethodName());
      if (method != null) {
        made.addMethod(each, unary(request -> answer(method, (Message) request)));
      }
    }
    return made.addMethod(QueueingServiceGrpc.getRequeueMethod(), (call, headers) -> requeue(call))
        .build();
  }

  private Message answer(QueueMethod<?, ?> method, Message request) {
    return arrived(arrival -> answering.answer(method, request, arrival));
  }

  /** Passes on what the plugin says, until the host hangs up. */
  private ServerCall.Listener<Queueing.RequeueRequest> requeue(
      ServerCall<Queueing.RequeueRequest, Queueing.RequeueResponse> call) {
    Requeue voice = session.traits.requeue == null ? new Requeue() : session.traits.requeue;
    Consumer<Queueing.RequeueResponse> heard =
        message -> {
          synchronized (call) {
            if (!call.isCancelled()) {
              call.sendMessage(message);
            }
          }
        };
    Consumer<CallException> stop =
        problem -> {
          voice.end(heard);
          synchronized (call) {
            if (!call.isCancelled()) {
              call.close(Status.OK, new Metadata());
            }
          }
        };
    synchronized (call) {
      voice.listen(heard);
      call.sendHeaders(new Metadata()); // nothing that is said from now on is lost
    }
    call.request(1);
    streams.add(stop);
    return new ServerCall.Listener<>() {
      @Override
      public void onCancel() {
        streams.remove(stop);
        voice.end(heard);
      }
    };
  }

  private void onEnd(
      StreamObserver<?> responses, Consumer<CallException> stop, Runnable cancelled) {
    streams.add(stop);
    ServerCallStreamObserver<?> known = (ServerCallStreamObserver<?>) responses;
    known.setOnCloseHandler(() -> streams.remove(stop));
    known.setOnCancelHandler(
        () -> {
          streams.remove(stop);
          cancelled.run();
        });
    // The handler above waits for the stream's thread, which may itself wait.
    Context.current().addListener(context -> cancelled.run(), Runnable::run);
  }

  /** Answers a call of its own by a function that throws CallException. */
  private static <Q, R> ServerCallHandler<Q, R> unary(Function<Q, R> function) {
    return ServerCalls.asyncUnaryCall(
        (request, responses) -> {
          try {
            responses.onNext(function.apply(request));
            responses.onCompleted();
          } catch (CallException e) {
            responses.onError(e.forGrpc());
          }
        });
  }

  /** Takes a place in the line, with the limits of this gRPC call. */
  private <R> R arrived(Function<Answering.Arrival, R> function) {
    Context context = Context.current();
    Deadline deadline = context.getDeadline();
    long left = deadline == null ? 0 : Math.max(1, deadline.timeRemaining(TimeUnit.NANOSECONDS));
    Patience patience = Patience.nanos(left);
    Context.CancellationListener listener = cancelled -> patience.cancel();
    context.addListener(listener, Runnable::run);
    try {
      Place here = new Place(session.line, null);
      return function.apply(new Answering.Arrival(here, patience, "grpc", CARRIER.get(context)));
    } finally {
      context.removeListener(listener);
    }
  }

  /** Keeps the trace context of each call. */
  static final class TraceContext implements ServerInterceptor {
    private static final List<Metadata.Key<String>> FIELDS =
        List.of(
            Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER),
            Metadata.Key.of("tracestate", Metadata.ASCII_STRING_MARSHALLER));

    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
      Map<String, String> carrier = new HashMap<>();
      for (Metadata.Key<String> field : FIELDS) {
        String value = headers.get(field);
        if (value != null) {
          carrier.put(field.name(), value);
        }
      }
      if (carrier.isEmpty()) {
        return next.startCall(call, headers);
      }
      Context context = Context.current().withValue(CARRIER, carrier);
      return Contexts.interceptCall(context, call, headers, next);
    }
  }
}
