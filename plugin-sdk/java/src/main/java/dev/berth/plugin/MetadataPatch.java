package dev.berth.plugin;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.Map;

/** What the scheduler writes to the pod before it binds; a null value removes the key. */
@JsonInclude(JsonInclude.Include.NON_EMPTY)
public record MetadataPatch(
    @JsonInclude(content = JsonInclude.Include.ALWAYS) Map<String, String> annotations,
    @JsonInclude(content = JsonInclude.Include.ALWAYS) Map<String, String> labels)
    implements Answer.ToReserve {
  /** Sets one annotation. */
  public static MetadataPatch annotate(String key, String value) {
    return new MetadataPatch(Map.of(key, value), Map.of());
  }
}
