package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import java.util.Arrays;
import java.util.List;

/**
 * A pod's place in the queue: at most 8 numbers that are compared in order, the lowest first.
 * Missing ones are 0.
 */
public record SortKey(List<Long> parts) {
  private static final int MAX_PARTS = 8;

  public SortKey {
    parts = List.copyOf(parts);
    if (parts.size() > MAX_PARTS) {
      throw new IllegalArgumentException(
          "a sort key has at most " + MAX_PARTS + " parts, not " + parts.size());
    }
  }

  /** The key of these numbers. */
  public static SortKey of(long... parts) {
    return new SortKey(Arrays.stream(parts).boxed().toList());
  }

  Queueing.SortKey message() {
    return Queueing.SortKey.newBuilder().addAllParts(parts).build();
  }
}
