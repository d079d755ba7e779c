package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.berth.plugin.testing.Group;
import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import dev.berth.plugin.testing.Said;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is refused of the queue's order and of pod groups. */
class GroupsTest {
  private static final Node NODE = Make.node("a");

  private final Pod pod = Make.pod("p");

  /** Answers as it is given. */
  private record Fixed(SortKey key, Answer.ToGeneratePlacements placements, long... points)
      implements Plugin.QueueSort, Plugin.GeneratePlacements, Plugin.ScorePlacements {
    static final Requeue REQUEUE = new Requeue();

    @Override
    public Traits traits() {
      return Traits.named("fixed").requeue(REQUEUE);
    }

    @Override
    public SortKey sortKey(Pod asked) {
      return key;
    }

    @Override
    public Answer.ToGeneratePlacements generatePlacements(PodGroup group, Pod asked, Nodes nodes) {
      return placements;
    }

    @Override
    public long[] scorePlacements(
        PodGroup group, Pod asked, Nodes nodes, List<ProposedPlacement> proposed) {
      return points;
    }
  }

  @Test
  void aPodThatThePluginFailsForHasTheKeyZero() {
    try (Host host = Host.of(new Fixed(null, Status.SKIP), NODE)) {
      assertEquals(List.of(SortKey.of()), host.sortKeys(pod));
    }
  }

  @Test
  void aKeyIsAsLongAsTheSchedulerComparesIt() {
    assertEquals(8, SortKey.of(new long[8]).parts().size());
    assertThrows(IllegalArgumentException.class, () -> SortKey.of(new long[9]));
  }

  @Test
  void otherKeysComeInMessagesThatTheSchedulerReads() {
    try (Host host = Host.of(new Fixed(SortKey.of(), Status.SKIP), NODE)) {
      Iterator<Said> said = host.listen();
      Map<String, SortKey> keys = new HashMap<>();
      for (int i = 0; i < 5000; i++) {
        keys.put("u" + i, SortKey.of(i));
      }

      Fixed.REQUEUE.sortKeys("a test", keys);

      assertEquals(4096, said.next().uids().size());
      assertEquals(904, said.next().uids().size());
    }
  }

  /** A group of two, of which one pod has to have a node; each pod is proposed by itself. */
  private record Pairs(Answer.ToPodGroupPostFilter proposals)
      implements Plugin.PlacementFeasible, Plugin.PodGroupPostFilter {
    @Override
    public Traits traits() {
      return Traits.named("pairs");
    }

    @Override
    public Status placementFeasible(PodGroup group, Pod asked, PlacementProgress progress) {
      if (progress.scheduled() > 0) {
        return Status.SUCCESS;
      }
      return progress.remaining() > 0
          ? Status.of(Code.WAIT, "not yet")
          : Status.unschedulable("too few");
    }

    @Override
    public Answer.ToPodGroupPostFilter podGroupPostFilter(
        PodGroup group, Pod asked, Nodes nodes, Verdicts verdicts) {
      return proposals;
    }
  }

  @Test
  void aGroupIsJudgedByEachNumberOfPods() {
    try (Host host = Host.of(new Pairs(Status.SUCCESS), NODE)) {
      List<Code> codes =
          host
              .group("g", pod)
              .feasible(
                  new PlacementProgress(1, 0),
                  new PlacementProgress(0, 1),
                  new PlacementProgress(0, 0))
              .stream()
              .map(Status::code)
              .toList();

      assertEquals(List.of(Code.WAIT, Code.SUCCESS, Code.UNSCHEDULABLE), codes);
    }
  }

  @Test
  void evictionsAreProposedForAGroupInTheirOrder() {
    GroupPreemptions proposals = new GroupPreemptions().add(List.of("a")).add(List.of("b", "c"));
    try (Host host = Host.of(new Pairs(proposals), NODE)) {
      assertEquals(
          List.of(List.of("a"), List.of("b", "c")), host.group("g", pod).proposals().victims());
    }
    assertThrows(IllegalArgumentException.class, () -> proposals.add(List.of()));
  }

  private Status generated(Answer.ToGeneratePlacements answer) {
    try (Host host = Host.of(new Fixed(null, answer), NODE)) {
      Group.Placed placed = host.group("g", pod).placements();
      assertEquals(Map.of(), placed.placements());
      return placed.status();
    }
  }

  @Test
  void whatIsNoPlacementIsRefusedWithATextThatSaysSo() {
    assertEquals(Status.SKIP, generated(Status.SKIP));
    assertEquals(
        Status.error("fixed: placement \"x\": node 1 of 1"),
        generated(new Placements().add("x", 1)));
    assertEquals(
        Status.error("fixed: PENDING is no answer here"), generated(Status.pending("later")));
    assertEquals(Status.error("fixed: null is no answer here"), generated(null));
    assertThrows(IllegalArgumentException.class, () -> new Placements().add("", 0));
  }

  private Status scored(long... points) {
    try (Host host = Host.of(new Fixed(null, Status.SKIP, points), NODE)) {
      Group.Scored scored = host.group("g", pod).scores(List.of(Map.of("p", "a")));
      assertEquals(List.of(), scored.scores());
      return scored.status();
    }
  }

  @Test
  void scoresOfPlacementsAreCheckedAsThoseOfNodes() {
    assertEquals(Status.SKIP, scored((long[]) null));
    assertEquals(Status.error("fixed: expected 1 scores, got 2"), scored(1, 2));
    String range = "fixed: scores from 0 to 101 without normalization: 0 to 100 is the range";
    assertEquals(Status.error(range), scored(101));
  }
}
