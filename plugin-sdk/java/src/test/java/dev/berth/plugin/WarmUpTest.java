package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import berth.plugin.v1.Scheduling.FilterScoreResponse;
import berth.plugin.v1.Ttrpc.TtrpcResponse;
import com.google.protobuf.ByteString;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What is done before the first call for the calls' time. */
class WarmUpTest {
  /** What a frame has before its message. */
  private static final int HEADER = 10;

  @Test
  void madeUpCallsAreAnsweredLikeOthers() throws Exception {
    WarmUp warmUp = new WarmUp();
    for (int number = 0; number < 2; number++) {
      ByteBuffer frame = warmUp.answer(number);

      TtrpcResponse response = TtrpcResponse.parseFrom(ByteString.copyFrom(frame.position(HEADER)));
      assertFalse(response.hasStatus());
      FilterScoreResponse answer = FilterScoreResponse.parseFrom(response.getPayload());
      assertEquals(number + 2, answer.getFilter().getGeneration());
      assertTrue(answer.getFilter().getVerdicts().hasEach());
      assertTrue(answer.getScore().hasScores());
    }
    assertEquals(2, warmUp.session.mirror.pods.size());
  }

  private static final class Passing implements Plugin.Filter {
    @Override
    public Traits traits() {
      return Traits.named("passing");
    }

    @Override
    public Reason filter(Pod pod, Node node) {
      return null;
    }
  }

  private static long fullCollections() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .filter(each -> each.getName().matches(".*(Old|MarkSweep).*"))
        .mapToLong(GarbageCollectorMXBean::getCollectionCount)
        .sum();
  }

  @Test
  void whatALargeTransferBroughtIsCollectedBeforeCallsAreAnswered() {
    Node[] nodes =
        IntStream.range(0, 1_000).mapToObj(at -> Make.node("n" + at)).toArray(Node[]::new);
    try (Host host = Host.of(new Passing(), nodes)) {
      long before = fullCollections();

      host.syncAsAnotherRun();

      assertTrue(fullCollections() > before);
    }
  }
}
