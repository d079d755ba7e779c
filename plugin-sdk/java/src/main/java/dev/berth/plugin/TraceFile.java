package dev.berth.plugin;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;

/**
 * Appends spans to a file, one JSON object a line, with ids in hex and numbers for kind and status
 * as in OTLP/JSON. Several processes may append to one file: each batch is one write.
 */
final class TraceFile implements SpanExporter {
  private static final System.Logger LOG = System.getLogger("berth");

  private final FileChannel file;

  TraceFile(Path path) throws IOException {
    file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }

  @Override
  public CompletableResultCode export(Collection<SpanData> spans) {
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    for (SpanData span : spans) {
      lines.writeBytes(Json.write(line(span)));
      lines.write('\n');
    }
    try {
      file.write(ByteBuffer.wrap(lines.toByteArray()));
      return CompletableResultCode.ofSuccess();
    } catch (IOException e) {
      LOG.log(System.Logger.Level.WARNING, "spans were lost", e);
      return CompletableResultCode.ofFailure();
    }
  }

  @Override
  public CompletableResultCode flush() {
    return CompletableResultCode.ofSuccess();
  }

  @Override
  public CompletableResultCode shutdown() {
    try {
      file.close();
      return CompletableResultCode.ofSuccess();
    } catch (IOException e) {
      return CompletableResultCode.ofFailure();
    }
  }

  private static ObjectNode line(SpanData span) {
    ObjectNode made = Json.MAPPER.createObjectNode();
    made.put("traceId", span.getTraceId());
    made.put("spanId", span.getSpanId());
    made.put("parentSpanId", span.getParentSpanContext().isValid() ? span.getParentSpanId() : "");
    made.put("name", span.getName());
    made.put("kind", span.getKind().ordinal() + 1); // OTLP begins with UNSPECIFIED
    made.put("startTimeUnixNano", span.getStartEpochNanos());
    made.put("endTimeUnixNano", span.getEndEpochNanos());
    made.set("attributes", values(span.getAttributes()));
    made.set("resource", values(span.getResource().getAttributes()));
    made.putObject("status")
        .put("code", span.getStatus().getStatusCode().ordinal()) // UNSET, OK, ERROR, as OTLP has it
        .put("message", span.getStatus().getDescription());
    return made;
  }

  private static ObjectNode values(Attributes attributes) {
    ObjectNode made = Json.MAPPER.createObjectNode();
    attributes.forEach((key, value) -> made.set(key.getKey(), Json.MAPPER.valueToTree(value)));
    return made;
  }
}
