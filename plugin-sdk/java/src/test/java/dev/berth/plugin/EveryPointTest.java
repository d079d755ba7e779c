package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import berth.plugin.v1.Identity;
import berth.plugin.v1.IdentityServiceGrpc;
import dev.berth.plugin.testing.Group;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import dev.berth.plugin.testing.Said;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

class EveryPointTest {
  private static final Node[] NODES = {Make.node("a"), Make.node("b")};

  private final Slots plugin = new Slots();
  private final Pod pod = Make.pod("p");
  private final Pod old = Make.pod("old");

  @Test
  void whatAPluginImplementsIsWhatItAnnounces() {
    try (Host host = Host.of(plugin, NODES)) {
      Identity.Capabilities announced = host.handshake().getCapabilities();

      assertEquals(18, announced.getExtensionPointsCount());
      assertEquals("plugin.sock.ttrpc", announced.getTtrpcSocket());
      assertEquals(3, announced.getWantedDeadlines(0).getDeadline().getSeconds());
      assertTrue(announced.getEvents(0).getAskHint());
    }
  }

  @Test
  void aGateAnswersWithoutState() {
    try (Host host = Host.of(plugin)) {
      Status status = host.preEnqueue(Make.pod("p", Map.of("team", "red")));

      assertEquals(Status.pending("team red waits"), status);
    }
  }

  @Test
  void podsThatCountOnANodeFillIt() {
    try (Host host = Host.of(plugin, NODES)) {
      host.cluster.putPod(old, "a", PodStage.PLACED, 0);

      Host.FilterScore answer = host.filterScore(pod);

      assertEquals(Map.of("a", Slots.FULL), answer.verdict().rejected());
      assertEquals(Map.of("b", 1000L), answer.scores());
    }
  }

  @Test
  void aSkippedFilterLetsEveryNodePass() {
    try (Host host = Host.of(plugin, NODES)) {
      host.cluster.putPod(old, "a", PodStage.PLACED, 0);

      assertEquals(List.of("a", "b"), host.filter(Make.pod("any")).passing());
    }
  }

  @Test
  void anExceptionFailsTheAttemptWithItsText() {
    try (Host host = Host.of(plugin, NODES)) {
      Status status = host.filterStatus(Make.pod("broken"));

      String text = "slots: preFilter: java.lang.IllegalStateException: no such slot";
      assertEquals(Status.error(text), status);
    }
  }

  @Test
  void anOverlayIsTakenOffAgain() {
    try (Host host = Host.of(plugin, NODES)) {
      host.cluster.putPod(old, "a", PodStage.PLACED, 0);

      assertNull(host.filterWithout(pod, "a", old));
      assertEquals(Slots.FULL, host.filterWithout(pod, "a"));
      assertEquals(List.of("b"), host.filter(pod).passing());
    }
  }

  @Test
  void roomIsMadeWhereAPodIs() {
    try (Host host = Host.of(plugin, NODES)) {
      host.cluster.putPod(old, "b", PodStage.PLACED, 0);

      Answer.ToPostFilter answer = host.postFilter(pod, Slots.FULL);

      assertEquals(new Nomination("b", List.of("pod-default-old")), answer);
    }
  }

  @Test
  void aReservationIsHeldUntilItsOwnAttemptGivesItBack() {
    try (Host host = Host.of(plugin, NODES)) {
      assertEquals(Status.SUCCESS, host.reserve(old, "a"));
      assertEquals(List.of("b"), host.filter(pod).passing());

      host.unreserve(old, "a");
      assertEquals(List.of("a", "b"), host.filter(pod).passing());

      host.reserve(old, "a");
      host.syncAsAnotherRun();
      assertEquals(List.of("a", "b"), host.filter(pod).passing());
    }
  }

  @Test
  void aPodThatIsGoneFreesItsSlot() {
    try (Host host = Host.of(plugin, NODES)) {
      host.cluster.putPod(old, "a", PodStage.ASSUMED, 1);
      assertEquals(List.of("b"), host.filter(pod).passing());

      host.cluster.removePod(old);

      assertEquals(List.of("a", "b"), host.filter(pod).passing());
      assertEquals(List.of("gone pod-default-old"), plugin.heard);
    }
  }

  @Test
  void aProfileThatGoesIsNotConfiguredAnyMore() {
    try (Host host = Host.of(plugin, NODES)) {
      Identity.ConfigureRequest removal =
          Identity.ConfigureRequest.newBuilder()
              .setProtocolVersion(1)
              .setProfile(Host.PROFILE)
              .setRemoved(true)
              .build();
      IdentityServiceGrpc.newBlockingStub(host.channel()).configure(removal);

      StatusRuntimeException refused =
          assertThrows(StatusRuntimeException.class, () -> host.filter(pod));

      Metadata.Key<String> reason =
          Metadata.Key.of("berth-reason", Metadata.ASCII_STRING_MARSHALLER);
      assertEquals("NOT_CONFIGURED", refused.getTrailers().get(reason));
      assertEquals(List.of("removed " + Host.PROFILE), plugin.heard);
    }
  }

  @Test
  void thePluginsOwnThreadsHaveTheirTurn() throws Exception {
    try (Host host = Host.of(plugin, NODES)) {
      FutureTask<List<String>> own =
          new FutureTask<>(
              () -> {
                plugin.turns.run(() -> plugin.heard.add("a turn"));
                return plugin.heard;
              });
      new Thread(own).start();

      assertEquals(List.of("a turn"), own.get());
      assertEquals(List.of("a", "b"), host.filter(pod).passing());
    }
  }

  @Test
  void aNodeThatIsGoneTakesNoReservation() {
    try (Host host = Host.of(plugin, NODES)) {
      host.cluster.removeNode("a");

      assertEquals(Status.unschedulable("node a is gone"), host.reserve(pod, "a"));
    }
  }

  @Test
  void aWaitAtPermitHasAnEnd() {
    try (Host host = Host.of(plugin, Map.of("together", 2), NODES)) {
      assertEquals(new Wait(Duration.ofSeconds(30)), host.permit(pod, "a"));
    }
  }

  @Test
  void aBindingIsPreparedLeftAndReported() {
    try (Host host = Host.of(plugin, NODES)) {
      Answer.ToReserve patch = host.preBind(pod, "a");
      Status bound = host.bind(pod, "a", Map.of("k", "v"));
      host.postBind(pod, "a");
      host.cycleDone(pod, new Outcome(CycleOutcome.BOUND, "a", false));

      assertEquals(MetadataPatch.annotate(Slots.SLOT, "0").annotations(), annotations(patch));
      assertEquals(Status.SKIP, bound);
      assertEquals(
          List.of("bind {k=v}", "bound default/p to a", "done default/p BOUND"), plugin.heard);
    }
  }

  private static Map<String, String> annotations(Answer.ToReserve answer) {
    return answer instanceof MetadataPatch patch ? patch.annotations() : Map.of();
  }

  @Test
  void hintsAreATable() {
    try (Host host = Host.of(plugin, NODES)) {
      ClusterEvent gone = ClusterEvent.of("Pod", Action.DELETE, old, null);
      ClusterEvent came = ClusterEvent.of("Pod", Action.ADD, null, old);

      boolean[][] table = host.hints(List.of(pod, Make.pod("patient")), gone, came);

      assertArrayEquals(new boolean[][] {{true, false}, {false, false}}, table);
    }
  }

  @Test
  void podsHaveTheKeysThatThePluginGivesThem() {
    try (Host host = Host.of(plugin, NODES)) {
      List<SortKey> keys = host.sortKeys(pod, Make.pod("longer"));
      host.podsLeft("u", "v");
      host.queueReset();

      assertEquals(List.of(SortKey.of(0, 1), SortKey.of(0, 6)), keys);
      assertEquals(List.of("left [u, v]", "reset " + Host.PROFILE), plugin.heard);
    }
  }

  @Test
  void aGroupMayGoToTheNodesOfEachPlacement() {
    Node red = Make.node("c", Map.of("team", "red"));
    try (Host host = Host.of(plugin, NODES[0], red, NODES[1])) {
      Group group = host.group("g", pod, Make.pod("q"));
      Map<String, List<String>> all = Map.of("free", List.of("a", "b"), "red", List.of("c"));

      assertEquals(new Group.Placed(Status.SUCCESS, all), group.placements());
      assertEquals(Map.of("red", List.of("c")), group.placements("c").placements());
    }
  }

  @Test
  void aGroupThatCanGoNowhereHasNoPlacements() {
    try (Host host = Host.of(plugin, NODES[0])) {
      Status none = Status.unschedulable("more pods than slots");

      assertEquals(
          new Group.Placed(none, Map.of()), host.group("g", pod, Make.pod("q")).placements());
    }
  }

  @Test
  void placementsAreScoredByWhereTheirPodsGo() {
    try (Host host = Host.of(plugin, Map.of("slots", 300), NODES)) {
      host.cluster.putPod(old, "a", PodStage.PLACED, 0);

      Group.Scored answer =
          host.group("g", pod, Make.pod("q"))
              .scores(List.of(Map.of("p", "a", "q", "b"), Map.of("q", "b")));

      assertEquals(new Group.Scored(Status.SUCCESS, List.of(599L, 300L)), answer);
    }
  }

  @Test
  void whatThePluginSaysIsHeard() {
    try (Host host = Host.of(plugin, NODES)) {
      Iterator<Said> said = host.listen();

      plugin.requeue.pods("a slot came", List.of("u1", "u2"));
      plugin.requeue.allRejected("more came");
      plugin.requeue.allow("complete", List.of("u3"));
      plugin.requeue.sortKeys("fairness", Map.of("u4", SortKey.of(7)));

      assertEquals(new Said("REQUEUE", List.of("u1", "u2"), "a slot came"), said.next());
      assertEquals(new Said("REQUEUE_ALL", List.of(), "more came"), said.next());
      assertEquals(new Said("ALLOW_WAITING", List.of("u3"), "complete"), said.next());
      assertEquals(new Said("SORT_KEYS", List.of("u4"), "fairness"), said.next());
    }
  }

  /** Waits in PreEnqueue until a later call has been answered. */
  private static final class Waiting implements Plugin.PreEnqueue, Plugin.Filter {
    private final CountDownLatch filtered = new CountDownLatch(1);
    private final CountDownLatch waits = new CountDownLatch(1);

    @Override
    public Traits traits() {
      return Traits.named("waiting");
    }

    @Override
    public Status preEnqueue(Pod pod) {
      try {
        return Turns.await(
            () -> {
              waits.countDown();
              filtered.await();
              return Status.SUCCESS;
            });
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public Reason filter(Pod pod, Node node) {
      filtered.countDown();
      return null;
    }
  }

  @Test
  void othersGoOnWhileOneAwaits() throws Exception {
    Waiting waiting = new Waiting();
    try (Host host = Host.of(waiting, NODES)) {
      FutureTask<Status> gate = new FutureTask<>(() -> host.preEnqueue(pod));
      new Thread(gate).start();
      waiting.waits.await();

      assertEquals(List.of("a", "b"), host.filter(pod).passing());
      assertEquals(Status.SUCCESS, gate.get());
    }
  }

  /** The name is no name, and there are two forms of one question. */
  private static final class Twice implements Plugin.Filter, Plugin.FilterNodes {
    @Override
    public Traits traits() {
      return Traits.named("No Label");
    }

    @Override
    public Reason filter(Pod pod, Node node) {
      return null;
    }

    @Override
    public Verdicts filterNodes(Pod pod, Nodes nodes) {
      return new Verdicts(nodes.size());
    }
  }

  @Test
  void aPluginThatContradictsItselfIsNotServed() {
    Server.Options options = Server.Options.fromEnvironment();

    IllegalArgumentException problem =
        assertThrows(
            IllegalArgumentException.class, () -> new Server(new Twice(), "unix:/x", options));

    String text =
        "the name is no DNS label; two forms of one question: implement the one or the other";
    assertEquals(text, problem.getMessage());
  }
}
