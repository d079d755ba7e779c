package dev.berth.plugin;

import java.util.List;
import java.util.Map;

/**
 * Something that a plugin counts or measures itself. The name is of letters, digits and
 * underscores; a counter's ends with "_total".
 */
public record Metric(String name, Kind kind, String help, List<Sample> samples) {
  /** How the number moves. */
  public enum Kind {
    COUNTER,
    GAUGE
  }

  /** A number with its labels. */
  public record Sample(Map<String, String> labels, double value) {}
}
