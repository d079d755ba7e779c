package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import berth.plugin.v1.Scheduling;
import berth.plugin.v1.SchedulingServiceGrpc;
import com.google.protobuf.ByteString;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Nodes asked about by index: the answer has an entry for each of them, and for no other. */
class ListedCandidatesTest {
  private static final Reason SECOND = Reason.of("node(s) were the second");
  private static final Node[] NODES = {Make.node("a"), Make.node("b"), Make.node("c")};

  private final Pod pod = Make.pod("p");

  /** Answers node by node. */
  private static final class ByNode implements Plugin.Filter, Plugin.Score {
    final List<String> seen = new ArrayList<>();

    @Override
    public Traits traits() {
      return Traits.named("by-node");
    }

    @Override
    public Reason filter(Pod pod, Node node) {
      seen.add(node.getMetadata().getName());
      return node.getMetadata().getName().equals("b") ? SECOND : null;
    }

    @Override
    public long score(Pod pod, Node node) {
      return 10 * (node.getMetadata().getName().charAt(0) - 'a');
    }
  }

  /** Answers for all nodes at once. */
  private static final class AtOnce implements Plugin.FilterNodes, Plugin.ScoreNodes {
    @Override
    public Traits traits() {
      return Traits.named("at-once");
    }

    @Override
    public Verdicts filterNodes(Pod pod, Nodes nodes) {
      Verdicts verdicts = new Verdicts(nodes.size());
      verdicts.reject(1, SECOND);
      return verdicts;
    }

    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return LongStream.range(0, nodes.size()).map(at -> 10 * at).toArray();
    }
  }

  private static Scheduling.FilterScoreResponse asked(Host host, Pod pod, byte[] indices) {
    Scheduling.FilterScoreRequest request =
        Scheduling.FilterScoreRequest.newBuilder()
            .setCall(host.call(pod))
            .setCandidates(
                Scheduling.Candidates.newBuilder().setIndices(ByteString.copyFrom(indices)))
            .build();
    return SchedulingServiceGrpc.newBlockingStub(host.channel()).filterScore(request);
  }

  private void answersAsABitmap(Host host) {
    host.once = true;
    for (boolean lists : new boolean[] {false, true}) {
      host.listsCandidates = lists;

      Host.FilterScore both = host.filterScore(pod, "b", "c");

      assertEquals(Map.of("b", SECOND), both.verdict().rejected());
      assertEquals(both.verdict(), host.filter(pod, "b", "c"));
      assertEquals(Map.of("c", 20L), both.scores());
      assertEquals(Map.of("a", 0L, "c", 20L), host.score(pod, "a", "c"));
    }
  }

  @Test
  void listedNodesAreAnsweredAsThoseOfABitmap() {
    ByNode byNode = new ByNode();
    try (Host host = Host.of(byNode, NODES)) {
      answersAsABitmap(host);
      assertEquals(List.of("b", "c", "b", "c", "b", "c", "b", "c"), byNode.seen);
    }
    try (Host host = Host.of(new AtOnce(), NODES)) {
      answersAsABitmap(host);
    }
  }

  @Test
  void anAnswerHasAnEntryForEachListedNode() {
    for (Plugin plugin : List.of(new ByNode(), new AtOnce())) {
      try (Host host = Host.of(plugin, NODES)) {
        assertTrue(host.handshake().getCapabilities().getListedCandidates());

        Scheduling.FilterScoreResponse answer =
            asked(host, pod, new byte[] {1, 0, 0, 0, 2, 0, 0, 0});

        ByteString codes = answer.getFilter().getVerdicts().getEach();
        assertEquals(ByteString.copyFrom(new byte[] {1, 0}), codes);
        ByteString points = answer.getScore().getScores().getUint8();
        assertEquals(ByteString.copyFrom(new byte[] {0, 20}), points);
      }
    }
  }

  @Test
  void anEmptyListAsksAboutNoNode() {
    ByNode byNode = new ByNode();
    try (Host host = Host.of(byNode, NODES)) {
      Scheduling.FilterScoreResponse answer = asked(host, pod, new byte[0]);

      assertTrue(answer.getFilter().getVerdicts().hasAll());
      assertFalse(answer.hasScore());
      assertEquals(List.of(), byNode.seen);
    }
  }

  @Test
  void indicesThatListNoNodesAreRefused() {
    Map<byte[], String> cases =
        Map.of(
            new byte[] {0, 0, 0, 0, 1},
            "candidates: indices of 5 bytes, each has 4",
            new byte[] {2, 0, 0, 0, 1, 0, 0, 0},
            "candidates: index 1 after 2: they have to ascend",
            new byte[] {1, 0, 0, 0, 1, 0, 0, 0},
            "candidates: index 1 after 1: they have to ascend",
            new byte[] {0, 0, 0, 0, 3, 0, 0, 0},
            "candidates: index 3 of 3 nodes",
            new byte[] {-1, -1, -1, -1},
            "candidates: index 4294967295 of 3 nodes");
    try (Host host = Host.of(new ByNode(), NODES)) {
      cases.forEach(
          (indices, text) -> {
            StatusRuntimeException problem =
                assertThrows(StatusRuntimeException.class, () -> asked(host, pod, indices));
            assertEquals(Code.INVALID_ARGUMENT, problem.getStatus().getCode());
            assertEquals(text, problem.getStatus().getDescription());
          });
    }
  }
}
