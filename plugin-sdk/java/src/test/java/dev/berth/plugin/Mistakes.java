package dev.berth.plugin;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.HashMap;
import java.util.Map;

/**
 * Plugins with one usual mistake each, by the name in MISTAKE: what the conformance kit has to
 * find.
 */
public final class Mistakes {
  private static final long POINTS = 10;
  private static final long TURNS = 7;
  private static final long MAX = 100;

  private Mistakes() {}

  /** Leaves the last node out. */
  private record TooShort(Traits traits) implements Plugin.ScoreNodes {
    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return new long[nodes.size() - 1];
    }
  }

  /** Has an entry for each node that is asked about, and for no other. */
  private record AskedOnly(Traits traits) implements Plugin.ScoreNodes {
    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return nodes.asked().mapToLong(index -> POINTS).toArray();
    }
  }

  /** Counts the pods on a node below 0. */
  private record Negative(Traits traits) implements Plugin.ScoreNodes {
    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return nodes.scores(index -> -nodes.podsOn(nodes.name(index)).size());
    }
  }

  /** Scores nodes in turns. */
  private static final class KeepsState implements Plugin.Score {
    private long turn;

    @Override
    public Traits traits() {
      return Traits.named("keeps-state");
    }

    @Override
    public long score(Pod pod, Node node) {
      turn++;
      return turn % TURNS;
    }
  }

  /** Scores pods by the order in which it was asked about them. */
  private static final class OrderMatters implements Plugin.Score {
    private final Map<String, Integer> numbers = new HashMap<>();

    @Override
    public Traits traits() {
      return Traits.named("order-matters");
    }

    @Override
    public long score(Pod pod, Node node) {
      int number = numbers.computeIfAbsent(pod.getMetadata().getUid(), uid -> numbers.size());
      return MAX / (1 + number);
    }
  }

  /** Serves the plugin with the mistake that the environment names. */
  public static void main(String[] arguments) {
    String name = System.getenv("MISTAKE");
    Traits traits = Traits.named(name);
    Program.main(
        switch (name) {
          case "too-short" -> new TooShort(traits);
          case "asked-only" -> new AskedOnly(traits);
          case "negative" -> new Negative(traits.pods());
          case "keeps-state" -> new KeepsState();
          case "order-matters" -> new OrderMatters();
          default -> throw new IllegalArgumentException("MISTAKE: " + name);
        },
        arguments);
  }
}
