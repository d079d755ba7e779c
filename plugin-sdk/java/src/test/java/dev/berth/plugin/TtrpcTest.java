package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import berth.plugin.v1.Scheduling;
import berth.plugin.v1.Ttrpc.TtrpcErrorInfo;
import berth.plugin.v1.Ttrpc.TtrpcRequest;
import berth.plugin.v1.Ttrpc.TtrpcResponse;
import com.google.protobuf.ByteString;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Pod;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TtrpcTest {
  private static final String SCHEDULING = "berth.plugin.v1.SchedulingService";

  private final Pod pod = Make.pod("p");
  private Host host;
  private SocketChannel channel;

  @BeforeEach
  void dial() throws IOException {
    host = Host.of(new Slots(), Make.node("a"), Make.node("b"));
    channel =
        SocketChannel.open(
            UnixDomainSocketAddress.of(host.socket().resolveSibling("plugin.sock.ttrpc")));
  }

  @AfterEach
  void hangUp() throws IOException {
    channel.close();
    host.close();
  }

  private static ByteBuffer frame(int stream, int type, byte[] message) {
    ByteBuffer frame = ByteBuffer.allocate(10 + message.length);
    frame.putInt(message.length).putInt(stream).put((byte) type).put((byte) 0).put(message);
    return frame.flip();
  }

  private void send(int stream, String method, ByteString payload, long timeoutNano)
      throws IOException {
    TtrpcRequest request =
        TtrpcRequest.newBuilder()
            .setService(SCHEDULING)
            .setMethod(method)
            .setPayload(payload)
            .setTimeoutNano(timeoutNano)
            .build();
    channel.write(frame(stream, 1, request.toByteArray()));
  }

  private ByteString filter(long ahead) {
    return Scheduling.FilterRequest.newBuilder()
        .setCall(host.call(pod).toBuilder().setGeneration(host.call(pod).getGeneration() + ahead))
        .build()
        .toByteString();
  }

  private ByteBuffer read(int length) throws IOException {
    ByteBuffer into = ByteBuffer.allocate(length);
    while (into.hasRemaining() && channel.read(into) >= 0) {
      continue;
    }
    return into.flip();
  }

  private record Answer(int stream, TtrpcResponse response) {}

  private Answer answer() throws IOException {
    ByteBuffer header = read(10);
    int length = header.getInt();
    return new Answer(header.getInt(), TtrpcResponse.parseFrom(read(length)));
  }

  @Test
  void aCallIsAnsweredUnderItsNumber() throws IOException {
    send(7, "Filter", filter(0), 0);

    Answer answer = answer();

    assertEquals(7, answer.stream);
    assertEquals(
        1, Scheduling.FilterResponse.parseFrom(answer.response.getPayload()).getGeneration());
  }

  @Test
  void aCallThatWaitsKeepsNoOtherWaiting() throws IOException {
    send(1, "Filter", filter(1), 0);
    send(3, "Filter", filter(0), 0);
    assertEquals(3, answer().stream);

    host.cluster.putNode(Make.node("a"));
    host.update();

    Answer late = answer();
    assertEquals(1, late.stream);
    assertEquals(
        2, Scheduling.FilterResponse.parseFrom(late.response.getPayload()).getGeneration());
  }

  @Test
  void aCallWaitsNoLongerThanItsDeadline() throws IOException {
    send(1, "Filter", filter(1), 1_000_000);

    assertEquals(4, answer().response.getStatus().getCode());
  }

  @Test
  void aRefusalSaysWhatTheHostHasToDo() throws IOException {
    Scheduling.FilterRequest request =
        Scheduling.FilterRequest.newBuilder()
            .setCall(host.call(pod).toBuilder().setEpoch("another"))
            .build();
    send(1, "Filter", request.toByteString(), 0);

    TtrpcResponse response = answer().response;

    assertEquals(9, response.getStatus().getCode());
    TtrpcErrorInfo info = TtrpcErrorInfo.parseFrom(response.getStatus().getDetails(0).getValue());
    assertEquals("NOT_SYNCED", info.getReason());
    assertEquals("berth", info.getDomain());
  }

  @Test
  void anUnknownMethodIsUnimplemented() throws IOException {
    send(1, "Converse", ByteString.EMPTY, 0);

    assertEquals(12, answer().response.getStatus().getCode());
  }

  @Test
  void aRequestThatIsNoneIsTheHostsFault() throws IOException {
    send(1, "Filter", ByteString.copyFrom(new byte[] {(byte) 0xff}), 0);

    assertEquals(3, answer().response.getStatus().getCode());
  }

  @ParameterizedTest
  @ValueSource(strings = {"too long", "a response", "an even number", "no request"})
  void aFrameThatDoesNotBelongHereEndsTheConnection(String what) throws IOException {
    byte[] none = {(byte) 0xff};
    ByteBuffer wrong =
        switch (what) {
          case "too long" -> frame(1, 1, none).putInt(0, (4 << 20) + 1);
          case "a response" -> frame(1, 2, new byte[0]);
          case "an even number" -> frame(2, 1, new byte[0]);
          default -> frame(1, 1, none);
        };
    channel.write(wrong);

    assertFalse(read(1).hasRemaining());
  }

  @Test
  void severalCallsInOnePieceAreAllAnswered() throws IOException {
    ByteArrayOutputStream whole = new ByteArrayOutputStream();
    for (int stream = 1; stream < 200; stream += 2) {
      TtrpcRequest request =
          TtrpcRequest.newBuilder()
              .setService(SCHEDULING)
              .setMethod("Filter")
              .setPayload(filter(0))
              .build();
      whole.writeBytes(frame(stream, 1, request.toByteArray()).array());
    }
    channel.write(ByteBuffer.wrap(whole.toByteArray()));

    for (int stream = 1; stream < 200; stream += 2) {
      assertEquals(stream, answer().stream);
    }
  }

  @Test
  void bothSocketsArePrivate() throws IOException {
    for (String name : new String[] {"plugin.sock", "plugin.sock.ttrpc"}) {
      Object mode = Files.getAttribute(host.socket().resolveSibling(name), "unix:mode");
      assertEquals(0140600, mode);
    }
  }
}
