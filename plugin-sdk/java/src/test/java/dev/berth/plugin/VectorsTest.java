package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Vectors that answer for all nodes, and a harness that asks about them as the scheduler does. */
class VectorsTest {
  private static final Node[] NODES = {Make.node("a"), Make.node("b"), Make.node("c")};
  private static final Reason SECOND = Reason.of("the second");

  /** Turns down the second node, and scores by index. */
  record Builds() implements Plugin.FilterNodes, Plugin.ScoreNodes {
    @Override
    public Traits traits() {
      return Traits.named("builds");
    }

    @Override
    public Verdicts filterNodes(Pod pod, Nodes nodes) {
      return nodes.verdicts(at -> at == 1 ? SECOND : null);
    }

    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return nodes.scores(at -> 10L * at);
    }
  }

  /** Has an entry for each node that is asked about, and for no other. */
  record Appends() implements Plugin.ScoreNodes {
    @Override
    public Traits traits() {
      return Traits.named("appends");
    }

    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return nodes.asked().mapToLong(at -> 1).toArray();
    }
  }

  @Test
  void buildersMakeVectorsWithAnEntryForEachNode() {
    try (Host host = Host.of(new Builds(), NODES)) {
      Host.FilterScore answer = host.filterScore(Make.pod("p"), "b", "c");

      assertEquals(List.of("c"), answer.verdict().passing());
      assertEquals(Map.of("c", 20L), answer.scores());
    }
  }

  @Test
  void aVectorOfTheAskedNodesAloneEndsATest() {
    try (Host host = Host.of(new Appends(), NODES)) {
      AssertionError said = assertThrows(AssertionError.class, () -> host.score(Make.pod("p")));

      assertTrue(said.getMessage().contains("expected 3 scores, got 1"), said.getMessage());
    }
  }
}
