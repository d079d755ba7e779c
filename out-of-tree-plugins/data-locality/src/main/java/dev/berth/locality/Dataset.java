package dev.berth.locality;

import com.fasterxml.jackson.databind.JsonNode;
import dev.berth.plugin.ObjectKey;
import dev.berth.plugin.WatchedResource;
import io.fabric8.kubernetes.api.model.Quantity;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How much of a data set is cached where: its size, 0 if that is not known, and percents by node.
 */
record Dataset(long bytes, Map<String, Integer> cachedPercent) {
  static final WatchedResource KIND = WatchedResource.of("data.berth.dev", "v1alpha1", "datasets");

  /** The kind as events name it. */
  static final String EVENTS = "datasets.v1alpha1.data.berth.dev";

  static final Dataset UNKNOWN = new Dataset(0, Map.of());

  private static final int WHOLE = 100;

  /** Names a data set. */
  record Name(String namespace, String name) {
    static Name of(ObjectKey key) {
      return new Name(key.namespace(), key.name());
    }
  }

  /** Reads a Dataset; what its definition does not allow counts as not there. */
  static Dataset of(JsonNode object) {
    Map<String, Integer> cached = new LinkedHashMap<>();
    for (JsonNode entry : object.at("/status/nodes")) {
      int percent = Math.min(WHOLE, entry.path("cachedPercent").asInt());
      if (percent > 0) {
        cached.put(entry.path("name").asText(), percent);
      }
    }
    return new Dataset(bytes(object.at("/spec/size")), cached);
  }

  private static long bytes(JsonNode size) {
    if (!size.isTextual() && !size.isNumber()) {
      return 0;
    }
    try {
      BigDecimal bytes = Quantity.getAmountInBytes(new Quantity(size.asText()));
      return Math.max(0, bytes.longValue());
    } catch (IllegalArgumentException e) {
      return 0;
    }
  }

  /** Whether more of it is cached on some node than before. */
  boolean hasMoreThan(Dataset before) {
    return cachedPercent.entrySet().stream()
        .anyMatch(each -> each.getValue() > before.cachedPercent.getOrDefault(each.getKey(), 0));
  }
}
