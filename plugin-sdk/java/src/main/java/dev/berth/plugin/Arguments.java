package dev.berth.plugin;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What profiles may configure, as a record. Its components are the arguments, the values that it is
 * made with their defaults, and {@link Argument} says what may stand there:
 *
 * <pre>
 * record Settings(
 *     {@literal @}Argument(value = "which nodes come first", oneOf = {"packing", "spreading"}) String policy,
 *     {@literal @}Argument(value = "how long to wait", minimum = 1, maximum = 3600) int seconds) {}
 * </pre>
 *
 * Unknown arguments, wrong types and values out of bounds are refused, all of them at once.
 */
public final class Arguments<T extends Record> {
  private static final String DEFAULT_PROFILE = "default-scheduler";

  private final T defaults;
  private final ObjectNode document;
  private final Shape shape;
  private final List<Check<T>> checks;
  private final Map<String, T> taken = new ConcurrentHashMap<>();

  /** A further check, of arguments whose types and bounds are right, before they count. */
  public interface Check<T> {
    /** Throws what is wrong; it may also take them over to where the plugin wants them. */
    void check(Profile profile, T arguments) throws ArgumentException;
  }

  private Arguments(T defaults, List<Check<T>> checks) {
    this.defaults = defaults;
    this.document = Json.MAPPER.valueToTree(defaults);
    this.shape = Shape.of(defaults);
    this.checks = checks;
  }

  /** Arguments with these defaults. */
  @SafeVarargs
  public static <T extends Record> Arguments<T> of(T defaults, Check<T>... checks) {
    return new Arguments<>(defaults, List.of(checks));
  }

  /** A profile's arguments, the defaults if it has none. */
  public T of(String profile) {
    return taken.getOrDefault(profile, defaults);
  }

  /** The arguments of the pod's profile: its scheduler's name. */
  public T of(Pod pod) {
    String profile = pod.getSpec() == null ? null : pod.getSpec().getSchedulerName();
    return of(profile == null ? DEFAULT_PROFILE : profile);
  }

  byte[] schema() {
    ObjectNode schema = Json.MAPPER.createObjectNode();
    schema.put("$schema", "https://json-schema.org/draft/2020-12/schema");
    return Json.write(schema.setAll(shape.document()));
  }

  /** Takes over a profile's arguments, or says all that is wrong with them. */
  List<String> take(Profile profile, byte[] given) {
    try {
      ObjectNode arguments = parse(given);
      List<String> problems = new ArrayList<>();
      shape.check("", arguments, problems);
      if (!problems.isEmpty()) {
        return problems;
      }
      T settings = settings(arguments);
      for (Check<T> check : checks) {
        try {
          check.check(profile, settings);
        } catch (ArgumentException e) {
          problems.addAll(e.problems());
        }
      }
      if (problems.isEmpty()) {
        taken.put(profile.name(), settings);
      }
      return problems;
    } catch (IllegalArgumentException e) {
      return List.of("arguments: " + e.getMessage());
    }
  }

  void drop(String profile) {
    taken.remove(profile);
  }

  /** What is wrong with the arguments of a plugin that has none. */
  static List<String> none(Profile profile, byte[] given) {
    try {
      List<String> problems = new ArrayList<>();
      parse(given)
          .fieldNames()
          .forEachRemaining(
              name -> problems.add(name + ": unknown argument of profile " + profile.name()));
      return problems;
    } catch (IllegalArgumentException e) {
      return List.of("arguments: " + e.getMessage());
    }
  }

  private static ObjectNode parse(byte[] given) {
    JsonNode document =
        given.length == 0 ? Json.MAPPER.createObjectNode() : Json.read(given, JsonNode.class);
    if (document instanceof ObjectNode object) {
      return object;
    }
    throw new IllegalArgumentException("expected object, got " + document);
  }

  private T settings(ObjectNode arguments) {
    ObjectNode whole = document.deepCopy();
    overlay(whole, arguments);
    @SuppressWarnings("unchecked")
    Class<T> kind = (Class<T>) defaults.getClass();
    return Json.read(whole, kind);
  }

  /** Lays the arguments over the defaults; null is no argument. */
  private static void overlay(ObjectNode under, JsonNode arguments) {
    arguments
        .properties()
        .forEach(
            each -> {
              if (each.getValue().isObject()
                  && under.get(each.getKey()) instanceof ObjectNode inner) {
                overlay(inner, each.getValue());
              } else if (!each.getValue().isNull()) {
                under.set(each.getKey(), each.getValue());
              }
            });
  }
}
