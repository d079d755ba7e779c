package dev.berth.plugin;

import java.util.Map;
import java.util.TreeMap;

/** Counts what the plugin does, and gives it in Prometheus' text format. */
final class Meter {
  /** The upper bounds of the duration buckets. */
  private static final double[] BOUNDS = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5
  };

  private static final String DURATION = "berth_plugin_call_duration_seconds";

  private final String info;
  private final Map<String, Long> calls = new TreeMap<>(); // by their labels
  private final Map<String, Durations> durations = new TreeMap<>();
  private final Map<String, Long> refusals = new TreeMap<>();
  private long passed;
  private long rejected;
  private long generation;
  private int nodes;
  private int pods;
  private int objects;

  private static final class Durations {
    final long[] buckets = new long[BOUNDS.length];
    long count;
    double sum;
  }

  Meter(String name, String version) {
    info = "{plugin=" + quoted(name) + ",version=" + quoted(version) + "}";
  }

  synchronized void answered(String method, io.grpc.Status.Code code, double seconds) {
    calls.merge("{method=" + quoted(method) + ",code=" + quoted(code.name()) + "}", 1L, Long::sum);
    Durations known = durations.computeIfAbsent(method, name -> new Durations());
    known.count++;
    known.sum += seconds;
    for (int i = 0; i < BOUNDS.length; i++) {
      if (seconds <= BOUNDS[i]) {
        known.buckets[i]++;
        break;
      }
    }
  }

  synchronized void verdicts(long passing, long turnedDown) {
    passed += passing;
    rejected += turnedDown;
  }

  synchronized void refused(String reason) {
    refusals.merge("{reason=" + quoted(reason) + "}", 1L, Long::sum);
  }

  synchronized void state(Mirror held) {
    generation = held.generation;
    nodes = held.nodes.size();
    pods = held.pods.size();
    objects = held.objects.size();
  }

  synchronized String exposition() {
    Page page = new Page();
    page.head("berth_plugin_info", "gauge", "The plugin.");
    page.line("berth_plugin_info" + info, 1);
    page.head(
        "berth_plugin_answered_calls_total", "counter", "Calls answered, by method and gRPC code.");
    calls.forEach(
        (labels, count) -> page.line("berth_plugin_answered_calls_total" + labels, count));
    page.head(DURATION, "histogram", "Time to answer a call, waiting for state included.");
    durations.forEach((method, known) -> write(page, method, known));
    String verdicts = "berth_plugin_node_verdicts_total";
    page.head(verdicts, "counter", "Nodes that passed Filter or were turned down.");
    page.line(verdicts + "{verdict=\"passed\"}", passed);
    page.line(verdicts + "{verdict=\"rejected\"}", rejected);
    String refused = "berth_plugin_state_refusals_total";
    page.head(refused, "counter", "Messages of the state stream that were refused, by reason.");
    refusals.forEach((labels, count) -> page.line(refused + labels, count));
    String held = "berth_plugin_state_generation";
    page.head(held, "gauge", "The generation of the state that is held, 0 if none is.");
    page.line(held, generation);
    page.head("berth_plugin_state_objects", "gauge", "What is held of the cluster.");
    page.line("berth_plugin_state_objects{kind=\"nodes\"}", nodes);
    page.line("berth_plugin_state_objects{kind=\"pods\"}", pods);
    page.line("berth_plugin_state_objects{kind=\"other\"}", objects);
    return page.text();
  }

  private static void write(Page page, String method, Durations known) {
    String labels = "{method=" + quoted(method);
    long below = 0;
    for (int i = 0; i < BOUNDS.length; i++) {
      below += known.buckets[i];
      page.line(DURATION + "_bucket" + labels + ",le=" + quoted(number(BOUNDS[i])) + "}", below);
    }
    page.line(DURATION + "_bucket" + labels + ",le=\"+Inf\"}", known.count);
    page.line(DURATION + "_sum" + labels + "}", known.sum);
    page.line(DURATION + "_count" + labels + "}", known.count);
  }

  /** What a plugin counts itself, in the same format. */
  static String exposition(Iterable<Metric> metrics) {
    Page page = new Page();
    for (Metric each : metrics) {
      page.head(each.name(), each.kind().name().toLowerCase(java.util.Locale.ROOT), each.help());
      for (Metric.Sample sample : each.samples()) {
        page.line(each.name() + labels(sample.labels()), sample.value());
      }
    }
    return page.text();
  }

  private static String labels(Map<String, String> labels) {
    if (labels.isEmpty()) {
      return "";
    }
    StringBuilder made = new StringBuilder();
    new TreeMap<>(labels)
        .forEach(
            (name, value) ->
                made.append(made.isEmpty() ? "{" : ",")
                    .append(name)
                    .append('=')
                    .append(quoted(value)));
    return made.append('}').toString();
  }

  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
  }

  private static String number(double value) {
    return new java.math.BigDecimal(String.valueOf(value)).stripTrailingZeros().toPlainString();
  }

  /** Lines of the exposition. */
  private static final class Page {
    private final StringBuilder text = new StringBuilder();

    void head(String name, String kind, String help) {
      text.append("# HELP ").append(name).append(' ').append(help).append('\n');
      text.append("# TYPE ").append(name).append(' ').append(kind).append('\n');
    }

    void line(String name, double value) {
      text.append(name)
          .append(' ')
          .append(Double.isFinite(value) ? number(value) : infinite(value));
      text.append('\n');
    }

    private static String infinite(double value) {
      return Double.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    }

    String text() {
      return text.toString();
    }
  }
}
