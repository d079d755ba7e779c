package dev.berth.locality;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.berth.plugin.Action;
import dev.berth.plugin.ClusterEvent;
import dev.berth.plugin.Code;
import dev.berth.plugin.ObjectKey;
import dev.berth.plugin.Reason;
import dev.berth.plugin.Status;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import dev.berth.plugin.testing.Said;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DataLocalityTest {
  /** Two nodes share a rack, a third its zone, a fourth is far away, and a fifth has no labels. */
  private static final Node[] NODES = {
    node("a", "r1", "z1"),
    node("b", "r1", "z1"),
    node("c", "r2", "z1"),
    node("d", "r1", "z2"),
    Make.node("e")
  };

  private static Node node(String name, String rack, String zone) {
    return Make.node(
        name, Map.of("topology.kubernetes.io/rack", rack, "topology.kubernetes.io/zone", zone));
  }

  private static Pod pod(String datasets) {
    return Make.annotated(Make.pod("p"), Map.of(Demand.DATASETS, datasets));
  }

  private static Pod strict(String datasets, String required) {
    return Make.annotated(
        Make.pod("p"), Map.of(Demand.DATASETS, datasets, Demand.REQUIRED, required));
  }

  private static ObjectKey key(String name) {
    return new ObjectKey("data.berth.dev", "v1alpha1", "datasets", "default", name);
  }

  private static Map<String, Object> dataset(
      String name, String size, Map<String, Integer> cached) {
    List<Map<String, Object>> nodes =
        cached.entrySet().stream()
            .map(e -> Map.<String, Object>of("name", e.getKey(), "cachedPercent", e.getValue()))
            .toList();
    return Map.of(
        "metadata", Map.of("name", name, "namespace", "default"),
        "spec", size.isEmpty() ? Map.of() : Map.of("size", size),
        "status", Map.of("nodes", nodes));
  }

  private static Host host(Object arguments) {
    Host host = Host.of(new DataLocality(), arguments, NODES);
    host.cluster.putObject(key("imagenet"), dataset("imagenet", "150Gi", Map.of("a", 60, "b", 30)));
    host.cluster.putObject(key("coco"), dataset("coco", "50Gi", Map.of("d", 100, "gone", 50)));
    host.cluster.putObject(key("notes"), dataset("notes", "", Map.of("c", 100)));
    return host;
  }

  /**
   * Of imagenet, a has 60 itself and 30 in its rack: 60 + 30 / 2 = 75. b has 30 itself and 60 in
   * its rack: 30 + 60 / 2 = 60. c has 90 in its zone: 90 / 5 = 18. A rack of the same name in
   * another zone is another rack.
   */
  @Test
  void dataCountsWhereItIsNearest() {
    try (Host host = host(Map.of())) {
      assertEquals(
          Map.of("a", 75L, "b", 60L, "c", 18L, "d", 0L, "e", 0L), host.score(pod("imagenet")));
    }
  }

  /** imagenet is three quarters of the bytes: a has 75 * 3 / 4 = 56.25, d 100 / 4 = 25. */
  @Test
  void dataSetsCountByTheirSize() {
    try (Host host = host(Map.of())) {
      assertEquals(
          Map.of("a", 56L, "b", 45L, "c", 13L, "d", 25L, "e", 0L),
          host.score(pod("imagenet, coco")));
    }
  }

  /** The size of notes is not known: c has (18 + 100) / 2 = 59, a (75 + 20) / 2 = 47.5. */
  @Test
  void dataSetsCountAlikeWhereASizeIsMissing() {
    try (Host host = host(Map.of())) {
      assertEquals(
          Map.of("a", 47L, "b", 40L, "c", 59L, "d", 0L, "e", 0L),
          host.score(pod("imagenet,notes,")));
    }
  }

  /** Of two data sets one does not exist: half of 75, 60 and 18. */
  @Test
  void aDataSetThatDoesNotExistIsNearNowhere() {
    try (Host host = host(Map.of())) {
      assertEquals(
          Map.of("a", 37L, "b", 30L, "c", 9L, "d", 0L, "e", 0L),
          host.score(pod("imagenet,nothing")));
    }
  }

  /** With nothing for racks, a has its own 60 and b its own 30. */
  @Test
  void weightsAreArguments() {
    Map<String, Integer> weights = Map.of("rack", 0, "zone", 0);
    try (Host host = host(Map.of("weights", weights))) {
      assertEquals(
          Map.of("a", 60L, "b", 30L, "c", 0L, "d", 0L, "e", 0L), host.score(pod("imagenet")));
    }
  }

  /** Without racks, all of z1 is the same beyond the node itself: b has 30 + 60 / 5 = 42. */
  @Test
  void labelsAreArguments() {
    try (Host host = host(Map.of("rackLabel", "example.com/rack"))) {
      assertEquals(
          Map.of("a", 66L, "b", 42L, "c", 18L, "d", 0L, "e", 0L), host.score(pod("imagenet")));
    }
  }

  @Test
  void dataThatIsNearerIsNotWorthLess() {
    Map<String, Object> arguments = Map.of("weights", Map.of("node", 10));

    AssertionError problem = assertThrows(AssertionError.class, () -> host(arguments).close());

    assertEquals("arguments: [weights: expected node >= rack >= zone]", problem.getMessage());
  }

  @Test
  void podsWithoutDataSetsAreNoMatter() {
    try (Host host = host(Map.of())) {
      assertEquals(Status.SKIP, host.scoreStatus(Make.pod("p")));
      assertEquals(Status.SKIP, host.filter(pod("imagenet")).status());
    }
  }

  @ParameterizedTest
  @CsvSource({"60,node,a", "30,node,a b", "90,rack,a b", "90,zone,a b c", "91,zone,''"})
  void requiredDataKeepsPodsOffNodesThatAreTooFar(int percent, String level, String passing) {
    try (Host host = host(Map.of("requiredPercent", percent))) {
      assertEquals(passing, String.join(" ", host.filter(strict("imagenet", level)).passing()));
    }
  }

  @Test
  void everyRequiredDataSetHasToBeNear() {
    try (Host host = host(Map.of())) {
      var verdict = host.filter(strict("coco,notes", "zone"));

      assertEquals(List.of(), verdict.passing());
      Reason reason = verdict.rejected().get("d");
      assertEquals(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason.code());
    }
  }

  @Test
  void aLevelThatIsNoneTurnsThePodDown() {
    try (Host host = host(Map.of())) {
      Status status = host.filter(strict("coco", "planet")).status();

      String text = "annotation data-locality.berth.dev/required: expected node, rack or zone";
      assertEquals(Status.of(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, text), status);
    }
  }

  /** The last node, e, moves to a's index; b then has 30 of its own and nothing beside it. */
  @Test
  void nodesThatGoTakeTheirCachesAlong() {
    try (Host host = host(Map.of())) {
      host.score(pod("imagenet"));
      host.cluster.removeNode("a");

      assertEquals(Map.of("e", 0L, "b", 30L, "c", 6L, "d", 0L), host.score(pod("imagenet")));
    }
  }

  @Test
  void aNodeThatMovesToAnotherRackIsNearerThere() {
    try (Host host = host(Map.of())) {
      host.score(pod("imagenet"));
      host.cluster.putNode(node("c", "r1", "z1"));

      assertEquals(45L, host.score(pod("imagenet")).get("c"));
    }
  }

  @Test
  void aCacheThatMovedHasNodesAskedAboutAnewWithoutTryingPods() {
    try (Host host = host(Map.of())) {
      host.update();
      Iterator<Said> said = host.listen();

      host.cluster.putObject(key("coco"), dataset("coco", "50Gi", Map.of("d", 100, "gone", 50)));
      host.cluster.putObject(key("notes"), dataset("notes", "", Map.of("a", 1)));
      host.update();

      assertEquals(
          new Said("REQUEUE", List.of(), "the caches of default/notes changed"), said.next());
    }
  }

  @Test
  void onlyMoreOfThePodsOwnDataIsWorthAnotherAttempt() {
    try (Host host = host(Map.of())) {
      List<Pod> pods = List.of(strict("coco", "rack"), strict("imagenet", "rack"));
      Object less = dataset("coco", "", Map.of("a", 50, "b", 50));
      Object more = dataset("coco", "", Map.of("a", 50, "b", 60));

      boolean[][] table =
          host.hints(
              pods,
              ClusterEvent.of(Dataset.EVENTS, Action.UPDATE, less, more),
              ClusterEvent.of(Dataset.EVENTS, Action.UPDATE, more, less),
              ClusterEvent.of(Dataset.EVENTS, Action.ADD, null, less));

      assertArrayEquals(new boolean[][] {{true, false}, {false, false}, {true, false}}, table);
    }
  }

  @Test
  void aNodeThatComesIsWorthAnAttemptWhereItMayBeNear() {
    try (Host host = host(Map.of())) {
      host.update();
      List<Pod> pods =
          List.of(strict("coco", "node"), strict("imagenet", "node"), strict("imagenet", "zone"));
      ClusterEvent came = ClusterEvent.of("Node", Action.ADD, null, Make.node("gone"));

      assertArrayEquals(new boolean[][] {{true, false, true}}, host.hints(pods, came));
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{}|0|{}",
        "{'spec': {'size': 'big'}}|0|{}",
        "{'spec': {'size': '-1'}, 'status': {'nodes': 7}}|0|{}",
        "{'spec': {'size': '1Ki'}, 'status': {'nodes': [{'name': 'a', 'cachedPercent': 101}, {'name': 'b'}, 1]}}|1024|{a=100}",
      })
  void whatTheDefinitionDoesNotAllowCountsAsNotThere(String json, long bytes, String cached)
      throws Exception {
    Dataset read =
        Dataset.of(
            new com.fasterxml.jackson.databind.ObjectMapper().readTree(json.replace('\'', '"')));

    assertEquals(bytes, read.bytes());
    assertEquals(cached, read.cachedPercent().toString());
  }
}
