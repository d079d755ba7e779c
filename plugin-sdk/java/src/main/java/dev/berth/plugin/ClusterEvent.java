package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.Optional;

/**
 * Something that happened to an object, whose JSON is null where there was or is none. The resource
 * is as in {@link EventInterest}.
 */
public record ClusterEvent(String resource, Action action, byte[] before, byte[] after) {
  static ClusterEvent of(Queueing.ClusterEvent message) {
    return new ClusterEvent(
        message.getResource(),
        Action.of(message.getAction()),
        message.hasOldObject() ? message.getOldObject().toByteArray() : null,
        message.hasNewObject() ? message.getNewObject().toByteArray() : null);
  }

  /**
   * The object as it was.
   *
   * @throws IllegalArgumentException if it can't be read as that
   */
  public <T> Optional<T> before(Class<T> kind) {
    return read(before, kind);
  }

  /**
   * The object as it is now: {@link Node}, {@link Pod}, or a class of the plugin's own.
   *
   * @throws IllegalArgumentException if it can't be read as that
   */
  public <T> Optional<T> after(Class<T> kind) {
    return read(after, kind);
  }

  private <T> Optional<T> read(byte[] object, Class<T> kind) {
    return object == null ? Optional.empty() : Optional.of(Json.read(object, kind));
  }
}
