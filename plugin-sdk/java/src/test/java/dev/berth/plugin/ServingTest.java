package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ServingTest {
  private static final Server.Options OPTIONS = Server.Options.fromEnvironment();

  @TempDir Path folder;

  private static ServingStatus health(Host host, String service) {
    HealthCheckRequest request = HealthCheckRequest.newBuilder().setService(service).build();
    return HealthGrpc.newBlockingStub(host.channel()).check(request).getStatus();
  }

  @Test
  void readinessIsConfiguredAndSynced() {
    try (Host host = Host.of(new Slots(), Make.node("a"))) {
      assertEquals(ServingStatus.SERVING, health(host, ""));
      assertEquals(ServingStatus.SERVING, health(host, "berth.plugin.v1.SchedulingService"));
    }
  }

  @Test
  void metricsAndStateAreShown() throws Exception {
    Path socket = folder.resolve("p.sock");
    try (Server server =
        new Server(new Slots(), "unix:" + socket, OPTIONS.withMetrics("127.0.0.1:0"))) {
      server.start();

      String text = page(server, "/metrics");

      assertTrue(text.contains("berth_plugin_info{plugin=\"slots\",version=\"1.2.3\"} 1\n"), text);
      assertEquals("{ }\n", page(server, "/state"));
    }
  }

  private static String page(Server server, String path) throws Exception {
    URI where = URI.create("http://127.0.0.1:" + server.metricsAddress().getPort() + path);
    HttpRequest request = HttpRequest.newBuilder(where).build();
    return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
  }

  @Test
  void callsAreCountedByMethodAndCode() {
    Meter meter = new Meter("p", "1");
    meter.answered("Filter", io.grpc.Status.Code.OK, 0.0002);
    meter.answered("Filter", io.grpc.Status.Code.OK, 0.3);
    meter.answered("Filter", io.grpc.Status.Code.FAILED_PRECONDITION, 9);

    List<String> lines = meter.exposition().lines().toList();

    String calls = "berth_plugin_answered_calls_total{method=\"Filter\",code=";
    assertTrue(lines.contains(calls + "\"OK\"} 2"));
    assertTrue(lines.contains(calls + "\"FAILED_PRECONDITION\"} 1"));
    String bucket = "berth_plugin_call_duration_seconds_bucket{method=\"Filter\",le=";
    assertTrue(lines.contains(bucket + "\"0.0001\"} 0"));
    assertTrue(lines.contains(bucket + "\"0.00025\"} 1"));
    assertTrue(lines.contains(bucket + "\"5\"} 2"));
    assertTrue(lines.contains(bucket + "\"+Inf\"} 3"));
  }

  @Test
  void thePluginsOwnMetricsHaveTheirLabels() {
    Metric.Sample sample = new Metric.Sample(Map.of("b", "x\"y", "a", "1"), 2.5);
    Metric metric = new Metric("hits_total", Metric.Kind.COUNTER, "Hits.", List.of(sample));

    String text = Meter.exposition(List.of(metric));

    String line = "hits_total{a=\"1\",b=\"x\\\"y\"} 2.5\n";
    assertEquals("# HELP hits_total Hits.\n# TYPE hits_total counter\n" + line, text);
  }

  @Test
  void tcpNeedsCertificates() throws IOException {
    Server server = new Server(new Slots(), "127.0.0.1:0", OPTIONS);

    IOException problem = assertThrows(IOException.class, server::start);

    String text = "127.0.0.1:0: only unix:/path sockets are served without certificates";
    assertEquals(text, problem.getMessage());
  }

  @Test
  void aSocketInUseIsNotTaken() throws IOException {
    try (Host host = Host.of(new Slots(), Make.node("a"))) {
      Server second = new Server(new Slots(), "unix:" + host.socket(), OPTIONS);

      IOException problem = assertThrows(IOException.class, second::start);

      assertEquals("unix:" + host.socket() + ": in use", problem.getMessage());
      assertTrue(host.filter(Make.pod("p")).passes("a"));
    }
  }

  @Test
  void aSocketThatWasLeftBehindIsReplaced() throws IOException {
    Path socket = folder.resolve("p.sock");
    try (var left =
        java.nio.channels.ServerSocketChannel.open(java.net.StandardProtocolFamily.UNIX)) {
      left.bind(java.net.UnixDomainSocketAddress.of(socket));
    }
    try (Server server = new Server(new Slots(), "unix:" + socket, OPTIONS)) {
      server.start();
      assertTrue(Files.exists(socket));
    }
    assertFalse(Files.exists(socket));
    try (var entries = Files.list(folder)) {
      assertEquals(0, entries.count());
    }
  }

  @Test
  void aFileThatIsNoSocketStays() throws IOException {
    Path file = Files.writeString(folder.resolve("p.sock"), "mine");
    Server server = new Server(new Slots(), "unix:" + file, OPTIONS);

    IOException problem = assertThrows(IOException.class, server::start);

    assertTrue(problem.getMessage().endsWith("there is a file that is no socket"));
    assertEquals("mine", Files.readString(file));
  }
}
