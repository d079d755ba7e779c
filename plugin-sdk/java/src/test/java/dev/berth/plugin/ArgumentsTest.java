package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.Pod;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ArgumentsTest {
  private static final Profile PROFILE = new Profile("berth", false);

  record Weights(@Argument(value = "of a node", minimum = 0) double node, int zone) {}

  record Settings(
      @Argument(
              value = "which come first",
              oneOf = {"packing", "spreading"})
          String policy,
      @Argument(value = "how long", minimum = 1, maximum = 3600) int seconds,
      @Argument("what counts") Weights weights,
      List<String> labels,
      Map<String, Integer> limits,
      boolean strict) {}

  private final Settings defaults =
      new Settings("packing", 60, new Weights(1.5, 2), List.of("a"), Map.of("x", 1), false);
  private final Arguments<Settings> arguments =
      Arguments.of(
          defaults,
          (profile, given) -> {
            if (given.labels().isEmpty()) {
              throw new ArgumentException("labels", "there is none");
            }
          });

  private List<String> take(String json) {
    return arguments.take(PROFILE, json.replace('\'', '"').getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void whatIsNotGivenIsTheDefault() {
    assertEquals(
        List.of(),
        take("{'seconds': 5, 'weights': {'zone': 7}, 'limits': {'y': 2}, 'policy': null}"));

    Settings taken = arguments.of("berth");
    assertEquals(5, taken.seconds());
    assertEquals(new Weights(1.5, 7), taken.weights());
    assertEquals(Map.of("x", 1, "y", 2), taken.limits());
    assertEquals("packing", taken.policy());
    assertEquals(defaults, arguments.of("another"));
  }

  @Test
  void everythingThatIsWrongIsSaidAtOnce() {
    List<String> problems =
        take(
            "{'policy': 'x', 'seconds': 0, 'weights': {'node': '1', 'rack': 2}, 'labels': ['a', 1], 'z': 1}");

    assertEquals(
        List.of(
            "policy: \"x\" is none of packing, spreading",
            "seconds: 0 is less than 1",
            "weights.node: expected number, got \"1\"",
            "weights.rack: unknown argument",
            "labels[1]: expected string, got 1",
            "z: unknown argument"),
        problems);
    assertEquals(defaults, arguments.of("berth"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{'seconds': 1.5}     | seconds: expected integer, got 1.5",
        "{'seconds': 3601}    | seconds: 3601 is more than 3600",
        "{'seconds': true}    | seconds: expected integer, got true",
        "{'strict': 0}        | strict: expected boolean, got 0",
        "{'limits': {'x': []}}| limits.x: expected integer, got []",
        "{'labels': []}       | labels: there is none",
        "[]                   | arguments: expected object, got []",
      })
  void whatIsWrongIsSaidWithItsPath(String json, String problem) {
    assertEquals(List.of(problem), take(json));
  }

  @Test
  void aWholeNumberMayHaveAFraction() {
    assertEquals(List.of(), take("{'seconds': 5.0}"));
    assertEquals(5, arguments.of("berth").seconds());
  }

  @Test
  void theSchemaSaysTheSame() throws Exception {
    var schema = Json.MAPPER.readTree(arguments.schema());

    assertEquals("https://json-schema.org/draft/2020-12/schema", schema.get("$schema").asText());
    var seconds = schema.at("/properties/seconds");
    assertEquals("integer", seconds.get("type").asText());
    assertEquals(60, seconds.get("default").asInt());
    assertEquals(3600, seconds.get("maximum").asInt());
    assertEquals("spreading", schema.at("/properties/policy/enum/1").asText());
    assertEquals(
        "of a node", schema.at("/properties/weights/properties/node/description").asText());
    assertEquals("string", schema.at("/properties/labels/items/type").asText());
  }

  @Test
  void aPluginWithoutArgumentsTakesNone() {
    byte[] given = "{\"x\": 1}".getBytes(StandardCharsets.UTF_8);

    assertEquals(List.of("x: unknown argument of profile berth"), Arguments.none(PROFILE, given));
  }

  @Test
  void aPodWithoutASchedulersNameHasTheDefaultProfile() {
    Profile profile = new Profile("default-scheduler", false);
    arguments.take(profile, "{\"seconds\": 7}".getBytes(StandardCharsets.UTF_8));

    assertEquals(7, arguments.of(new Pod()).seconds());
  }
}
