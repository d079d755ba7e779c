package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.Optional;

/** Something that happened to an object. */
public final class ClusterEvent {
  private final String resource;
  private final Action action;
  private final Version before;
  private final Version after;

  /** The object at one time, as JSON and, once it was asked for, as an object. */
  private static final class Version {
    private final JsonNode json;
    private Object read;

    Version(JsonNode json) {
      this.json = json;
    }

    <T> Optional<T> as(Class<T> kind) {
      if (json == null) {
        return Optional.empty();
      }
      if (!kind.isInstance(read)) {
        read = Json.read(json, kind);
      }
      return Optional.of(kind.cast(read));
    }
  }

  private ClusterEvent(String resource, Action action, JsonNode before, JsonNode after) {
    this.resource = resource;
    this.action = action;
    this.before = new Version(before);
    this.after = new Version(after);
  }

  /** An event as tests make it: objects are anything that Jackson writes as their JSON, or null. */
  public static ClusterEvent of(String resource, Action action, Object before, Object after) {
    return new ClusterEvent(resource, action, tree(before), tree(after));
  }

  /**
   * The event as it came.
   *
   * @throws IllegalArgumentException if the action or an object is none
   */
  static ClusterEvent of(Queueing.ClusterEvent message) {
    return new ClusterEvent(
        message.getResource(),
        Action.of(message.getAction()),
        message.hasOldObject() ? tree(message.getOldObject()) : null,
        message.hasNewObject() ? tree(message.getNewObject()) : null);
  }

  private static JsonNode tree(ByteString object) {
    return Json.read(object.toByteArray(), JsonNode.class);
  }

  private static JsonNode tree(Object object) {
    return object == null ? null : Json.MAPPER.valueToTree(object);
  }

  /** The kind, as in {@link EventInterest#of}. */
  public String resource() {
    return resource;
  }

  /** What happened. */
  public Action action() {
    return action;
  }

  /**
   * The object as it was, empty where there was none.
   *
   * @throws IllegalArgumentException if it can't be read as that
   */
  public <T> Optional<T> before(Class<T> kind) {
    return before.as(kind);
  }

  /**
   * The object as it is now: {@link Node}, {@link Pod}, JsonNode or a class of the plugin's own;
   * empty where there is none.
   *
   * @throws IllegalArgumentException if it can't be read as that
   */
  public <T> Optional<T> after(Class<T> kind) {
    return after.as(kind);
  }
}
