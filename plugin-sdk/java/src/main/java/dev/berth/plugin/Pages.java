package dev.berth.plugin;

import com.fasterxml.jackson.databind.SerializationFeature;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** GET /metrics and GET /state over HTTP. */
final class Pages {
  private final Session session;
  private final HttpServer server;

  /**
   * Serves them at host:port.
   *
   * @throws IOException if that address can't be had
   */
  Pages(Session session, String address) throws IOException {
    this.session = session;
    try {
      server = HttpServer.create(Server.tcp(address), 0);
    } catch (IOException e) {
      throw new IOException("metrics: " + address + ": " + e.getMessage(), e);
    }
    server.createContext("/metrics", this::metrics);
    server.createContext("/state", this::state);
    server.start();
  }

  InetSocketAddress address() {
    return server.getAddress();
  }

  void stop() {
    server.stop(0);
  }

  private void metrics(HttpExchange exchange) throws IOException {
    List<List<Metric>> own = new java.util.ArrayList<>();
    session.run(() -> ContractException.tell("metrics", () -> own.add(session.plugin.metrics())));
    String text = session.meter.exposition();
    for (List<Metric> each : own) {
      text += Meter.exposition(each);
    }
    send(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", text);
  }

  /** How things stand, made into text before another call may change it. */
  private void state(HttpExchange exchange) throws IOException {
    String[] text = {null};
    session.run(() -> ContractException.tell("state", () -> text[0] = stateText()));
    if (text[0] == null) {
      send(exchange, 500, "text/plain", "state failed\n");
    } else {
      send(exchange, 200, "application/json", text[0] + "\n");
    }
  }

  private String stateText() {
    try {
      return Json.MAPPER
          .writer(SerializationFeature.INDENT_OUTPUT)
          .writeValueAsString(session.plugin.state());
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    }
  }

  private static void send(HttpExchange exchange, int code, String kind, String text)
      throws IOException {
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", kind);
    exchange.sendResponseHeaders(code, body.length);
    try (exchange) {
      exchange.getResponseBody().write(body);
    }
  }
}
