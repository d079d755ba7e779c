package dev.berth.plugin;

import berth.plugin.v1.Ttrpc.TtrpcErrorInfo;
import berth.plugin.v1.Ttrpc.TtrpcKeyValue;
import berth.plugin.v1.Ttrpc.TtrpcRequest;
import berth.plugin.v1.Ttrpc.TtrpcResponse;
import berth.plugin.v1.Ttrpc.TtrpcStatus;
import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.grpc.Status;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/**
 * The scheduling calls in ttrpc's frames on a unix socket. The thread that reads a call answers it;
 * where that has to wait, another thread goes on reading.
 *
 * <p>Source: docs/protocol.md "ttrpc beside gRPC".
 */
final class Ttrpc {
  private static final System.Logger LOG = System.getLogger("berth");
  private static final int HEADER = 10;
  private static final int LONGEST = 4 << 20;
  private static final byte REQUEST = 1;
  private static final byte RESPONSE = 2;
  private static final Map<String, Map<String, Method<?, ?>>> METHODS =
      Map.of(
          "berth.plugin.v1.SchedulingService", Method.ALL,
          "berth.plugin.v1.PlacementService", Method.PLACEMENT,
          "berth.plugin.v1.GroupService", Method.GROUP);
  private static final String QUEUEING = "berth.plugin.v1.QueueingService";
  private static final String ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";

  private final Answering answering;
  private final ServerSocketChannel listener;
  private final ExecutorService executor;
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();

  Ttrpc(Answering answering, ServerSocketChannel listener, ExecutorService executor) {
    this.answering = answering;
    this.listener = listener;
    this.executor = executor;
  }

  /** Takes connections, until {@link #stop}. */
  void serve() {
    executor.execute(
        () -> {
          try {
            while (true) {
              Connection connection = new Connection(listener.accept());
              connections.add(connection);
              connection.lead();
            }
          } catch (IOException | RejectedExecutionException e) {
            LOG.log(System.Logger.Level.DEBUG, "ttrpc ended", e);
          }
        });
  }

  /** Takes no further call, and returns when the others are answered. */
  void stop() throws IOException, InterruptedException {
    listener.close();
    for (Connection each : connections) {
      each.stop();
    }
  }

  /** Hangs up, whatever is not answered yet. */
  void abort() throws IOException {
    for (Connection each : connections) {
      each.channel.close();
    }
  }

  private record Frame(int stream, byte[] message) {}

  private final class Connection {
    private final SocketChannel channel;
    private final ByteBuffer incoming = ByteBuffer.allocateDirect(1 << 16).flip();
    private final Set<Patience> waiting = ConcurrentHashMap.newKeySet();

    /** The threads that read, or answer a call of this connection. */
    private final AtomicInteger threads = new AtomicInteger();

    private final CountDownLatch ended = new CountDownLatch(1);
    private int last;

    Connection(SocketChannel channel) {
      this.channel = channel;
    }

    /** Has a thread read and answer calls, until another one does so or the host hangs up. */
    void lead() {
      threads.incrementAndGet();
      executor.execute(this::read);
    }

    private void read() {
      boolean reading = true;
      try {
        while (reading) {
          Frame frame = next();
          if (frame == null) {
            waiting.forEach(Patience::cancel);
            return;
          }
          reading = answer(frame);
        }
      } catch (IOException | RejectedExecutionException e) {
        LOG.log(System.Logger.Level.WARNING, "a ttrpc connection ended: {0}", e.getMessage());
        waiting.forEach(Patience::cancel);
        close();
      } finally {
        if (threads.decrementAndGet() == 0) {
          close();
        }
      }
    }

    /** Takes no further call, and returns when the others are answered. */
    void stop() throws IOException, InterruptedException {
      if (channel.isOpen()) {
        channel.shutdownInput();
      }
      ended.await();
    }

    private void close() {
      connections.remove(this);
      ended.countDown();
      try {
        channel.close();
      } catch (IOException e) {
        LOG.log(System.Logger.Level.DEBUG, "a ttrpc connection ended", e);
      }
    }

    /** The next call, null where there is none any more. */
    private Frame next() throws IOException {
      byte[] head = new byte[HEADER];
      if (!fill(head)) {
        return null;
      }
      ByteBuffer header = ByteBuffer.wrap(head);
      int length = header.getInt();
      int stream = header.getInt();
      byte type = header.get();
      if (length < 0 || length > LONGEST) {
        throw new IOException("a frame above 4 MiB");
      }
      if (type != REQUEST) {
        throw new IOException("a frame of type " + type + ", where 1 is due");
      }
      if ((stream & 1) == 0 || Integer.compareUnsigned(stream, last) <= 0) {
        throw new IOException("a stream id that is even or was there before");
      }
      last = stream;
      byte[] message = new byte[length];
      if (!fill(message)) {
        throw new IOException("half a frame");
      }
      return new Frame(stream, message);
    }

    private boolean fill(byte[] into) throws IOException {
      int at = 0;
      while (at < into.length) {
        if (!incoming.hasRemaining()) {
          incoming.clear();
          int count = channel.read(incoming);
          incoming.flip();
          if (count < 0) {
            return false;
          }
        }
        int part = Math.min(incoming.remaining(), into.length - at);
        incoming.get(into, at, part);
        at += part;
      }
      return true;
    }

    /** Answers a call; false if another thread reads the next one. */
    private boolean answer(Frame frame) throws IOException {
      TtrpcRequest request = TtrpcRequest.parseFrom(frame.message);
      boolean[] reading = {true};
      Patience patience = Patience.nanos(request.getTimeoutNano());
      waiting.add(patience);
      ByteBuffer response;
      try {
        response =
            frame(
                frame.stream,
                request,
                patience,
                () -> {
                  reading[0] = false;
                  lead();
                });
      } finally {
        waiting.remove(patience);
      }
      write(response);
      return reading[0];
    }

    private synchronized void write(ByteBuffer frame) throws IOException {
      while (frame.hasRemaining()) {
        channel.write(frame); // waits while the host does not read, and so does this connection
      }
    }
  }

  /** The frame that answers a request. */
  ByteBuffer frame(int stream, TtrpcRequest request, Patience patience, Runnable beforeWaiting)
      throws IOException {
    try {
      Message answer = respond(request, patience, beforeWaiting);
      // On the wire a message in a field is its bytes: written where they are sent from, an answer
      // about thousands of nodes is not copied twice on its way.
      int size = CodedOutputStream.computeMessageSize(TtrpcResponse.PAYLOAD_FIELD_NUMBER, answer);
      if (size > LONGEST) {
        throw new CallException(Status.Code.RESOURCE_EXHAUSTED, "an answer above 4 MiB");
      }
      return frame(
          stream, size, out -> out.writeMessage(TtrpcResponse.PAYLOAD_FIELD_NUMBER, answer));
    } catch (InvalidProtocolBufferException e) {
      TtrpcResponse refusal = refusal(CallException.invalid(e.getMessage()));
      return frame(stream, refusal.getSerializedSize(), refusal::writeTo);
    } catch (CallException e) {
      TtrpcResponse refusal = refusal(e);
      return frame(stream, refusal.getSerializedSize(), refusal::writeTo);
    }
  }

  /** Writes a message. */
  private interface Writing {
    void to(CodedOutputStream out) throws IOException;
  }

  private static ByteBuffer frame(int stream, int size, Writing message) throws IOException {
    ByteBuffer frame = ByteBuffer.allocate(HEADER + size);
    frame.putInt(size).putInt(stream).put(RESPONSE).put((byte) 0);
    CodedOutputStream out = CodedOutputStream.newInstance(frame.array(), HEADER, size);
    message.to(out);
    out.checkNoSpaceLeft();
    return frame.rewind();
  }

  /**
   * The answer to a request.
   *
   * @throws CallException why there is none
   * @throws InvalidProtocolBufferException if it can't be read
   */
  private Message respond(TtrpcRequest request, Patience patience, Runnable beforeWaiting)
      throws InvalidProtocolBufferException {

    String name = request.getMethod();
    Method<?, ?> method = METHODS.getOrDefault(request.getService(), Map.of()).get(name);
    QueueMethod<?, ?> ofQueue =
        request.getService().equals(QUEUEING) ? QueueMethod.ALL.get(name) : null;
    if (method == null && ofQueue == null) {
      throw new CallException(
          Status.Code.UNIMPLEMENTED, "no call " + request.getService() + "/" + name);
    }
    Message read =
        (method == null ? ofQueue.empty() : method.empty())
            .getParserForType()
            .parseFrom(request.getPayload());
    Place here = new Place(answering.session.line, beforeWaiting);
    Answering.Arrival arrival = new Answering.Arrival(here, patience, "ttrpc", carrier(request));
    return method == null
        ? answering.answer(ofQueue, read, arrival)
        : answering.answer(method, read, arrival);
  }

  private static Map<String, String> carrier(TtrpcRequest request) {
    return request.getMetadataList().stream()
        .collect(
            Collectors.toMap(
                TtrpcKeyValue::getKey, TtrpcKeyValue::getValue, (first, again) -> first));
  }

  private static TtrpcResponse refusal(CallException problem) {
    TtrpcStatus.Builder status =
        TtrpcStatus.newBuilder().setCode(problem.code.value()).setMessage(problem.text());
    if (!problem.reason.isEmpty()) {
      ByteString info =
          TtrpcErrorInfo.newBuilder()
              .setReason(problem.reason)
              .setDomain("berth")
              .build()
              .toByteString();
      status.addDetails(Any.newBuilder().setTypeUrl(ERROR_INFO).setValue(info));
    }
    return TtrpcResponse.newBuilder().setStatus(status).build();
  }
}
