package hello;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.berth.plugin.Action;
import dev.berth.plugin.ClusterEvent;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class HelloTest {
  private static final Node[] NODES = {
    Make.node("blue", Map.of("team", "blue")),
    Make.node("red", Map.of("team", "red")),
    Make.node("free")
  };

  private final Pod pod = Make.pod("p", Map.of("team", "blue"));

  @Test
  void podsStayOffOtherTeamsNodesAndPreferTheirOwn() {
    try (Host host = Host.of(new Hello(), NODES)) {
      Host.FilterScore answer = host.filterScore(pod);

      assertEquals(List.of("blue", "free"), answer.verdict().passing());
      assertEquals(Map.of("blue", 100L, "free", 0L), answer.scores());
    }
  }

  @Test
  void theLabelIsAnArgument() {
    try (Host host = Host.of(new Hello(), Map.of("label", "tenant"), NODES)) {
      assertEquals(3, host.filter(pod).passing().size());
    }
  }

  @Test
  void aNodeThatJoinsTheTeamIsWorthAnotherAttempt() {
    try (Host host = Host.of(new Hello(), NODES)) {
      boolean[][] table = host.hints(List.of(pod), joins("red"), joins("blue"));

      assertArrayEquals(new boolean[][] {{false}, {true}}, table);
    }
  }

  private static ClusterEvent joins(String team) {
    Node node = Make.node("free", Map.of("team", team));
    return ClusterEvent.of("Node", Action.UPDATE_NODE_LABEL, Make.node("free"), node);
  }
}
