package dev.berth.plugin;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Opens spans for the calls that are answered, as children of the scheduler's, if wanted. */
final class Tracing {
  private static final Getter GETTER = new Getter();

  private final OpenTelemetrySdk sdk;
  private final Tracer tracer;

  private Tracing(OpenTelemetrySdk sdk, String version) {
    this.sdk = sdk;
    this.tracer =
        sdk == null
            ? null
            : sdk.getTracerProvider()
                .tracerBuilder("dev.berth.plugin")
                .setInstrumentationVersion(version)
                .build();
  }

  /**
   * Writes spans where {@code OTEL_*} and {@code BERTH_TRACE_FILE} say, or none.
   *
   * @throws IOException if the file can't be written
   */
  static Tracing of(Traits traits, Map<String, String> environment) throws IOException {
    String file = environment.getOrDefault("BERTH_TRACE_FILE", "");
    boolean collected =
        !"none".equals(environment.get("OTEL_TRACES_EXPORTER"))
            && (environment.containsKey("OTEL_EXPORTER_OTLP_ENDPOINT")
                || environment.containsKey("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    if (file.isEmpty() && !collected) {
      return new Tracing(null, traits.version);
    }
    Map<String, String> defaults = new HashMap<>();
    defaults.put("otel.service.name", traits.name);
    defaults.put("otel.resource.attributes", "service.version=" + traits.version);
    defaults.put(
        "otel.traces.sampler", "parentbased_always_off"); // the traces that the host samples
    defaults.put("otel.metrics.exporter", "none");
    defaults.put("otel.logs.exporter", "none");
    TraceFile exporter = file.isEmpty() ? null : new TraceFile(Path.of(file));
    OpenTelemetrySdk made =
        AutoConfiguredOpenTelemetrySdk.builder()
            .disableShutdownHook()
            .addPropertiesSupplier(() -> defaults)
            .addPropertiesCustomizer(
                read -> collected ? Map.of() : Map.of("otel.traces.exporter", "none"))
            .addTracerProviderCustomizer(
                (provider, read) ->
                    exporter == null
                        ? provider
                        : provider.addSpanProcessor(BatchSpanProcessor.builder(exporter).build()))
            .build()
            .getOpenTelemetrySdk();
    return new Tracing(made, traits.version);
  }

  /** The span of a call; one that records nothing where none is wanted. */
  Span start(String name, Map<String, String> carrier) {
    if (tracer == null) {
      return Span.getInvalid();
    }
    Context parent =
        W3CTraceContextPropagator.getInstance().extract(Context.root(), carrier, GETTER);
    return tracer.spanBuilder(name).setParent(parent).setSpanKind(SpanKind.SERVER).startSpan();
  }

  /** Writes out what is pending. */
  void close(long millis) {
    if (sdk != null) {
      sdk.getSdkTracerProvider().shutdown().join(millis, TimeUnit.MILLISECONDS);
    }
  }

  private static final class Getter implements TextMapGetter<Map<String, String>> {
    @Override
    public Iterable<String> keys(Map<String, String> carrier) {
      return carrier.keySet();
    }

    @Override
    public String get(Map<String, String> carrier, String key) {
      return carrier.get(key);
    }
  }
}
