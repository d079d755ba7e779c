package dev.berth.plugin;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A plugin with every point: so many pods fit on a node. */
public final class Slots
    implements Plugin.PreEnqueue,
        Plugin.PreFilter,
        Plugin.FilterNodes,
        Plugin.ScoreNodes,
        Plugin.PostFilter,
        Plugin.Reserve,
        Plugin.Permit,
        Plugin.PreBind,
        Plugin.Bind,
        Plugin.PostBind,
        Plugin.CycleDone,
        Plugin.Hints,
        Plugin.QueueSort,
        Plugin.GeneratePlacements,
        Plugin.ScorePlacements,
        Plugin.PlacementFeasible,
        Plugin.PodGroupPostFilter,
        Plugin.StateListener {
  static final Reason FULL = Reason.of("node(s) had no slot left");
  static final String SLOT = "slots.example.com/slot";

  final Requeue requeue = new Requeue();
  final List<String> heard = new ArrayList<>();
  Turns turns;
  private final Arguments<Settings> arguments = Arguments.of(new Settings(1, 1));
  private final Map<String, Map<String, Integer>> reserved = new HashMap<>(); // by node and UID

  record Settings(
      @Argument(value = "pods that fit on a node", minimum = 1) int slots,
      @Argument("pods that have to wait at Permit for each other") int together) {}

  @Override
  public Traits traits() {
    return Traits.named("slots")
        .version("1.2.3")
        .arguments(arguments)
        .normalization(Normalization.MAX)
        .events(EventInterest.of("Pod", Action.DELETE))
        .pods()
        .requeue(requeue)
        .clock(new Clock())
        .wantedDeadline(Plugin.PreBind.class, Duration.ofSeconds(3));
  }

  @Override
  public void serving(Turns own) {
    turns = own;
  }

  @Override
  public void profileRemoved(String profile) {
    heard.add("removed " + profile);
  }

  private int left(Pod pod, Nodes nodes, int at) {
    Set<String> there = new HashSet<>(reserved.getOrDefault(nodes.name(at), Map.of()).keySet());
    nodes.podsOn(nodes.name(at)).forEach(placed -> there.add(placed.uid()));
    there.remove(pod.getMetadata().getUid());
    return Math.max(0, arguments.of(Call.current().profile().name()).slots() - there.size());
  }

  @Override
  public Status preEnqueue(Pod pod) {
    return "red".equals(pod.getMetadata().getLabels().get("team"))
        ? Status.pending("team red waits")
        : Status.SUCCESS;
  }

  @Override
  public Status preFilter(Pod pod) {
    if ("broken".equals(pod.getMetadata().getName())) {
      throw new IllegalStateException("no such slot");
    }
    return "any".equals(pod.getMetadata().getName()) ? Status.SKIP : Status.SUCCESS;
  }

  @Override
  public Verdicts filterNodes(Pod pod, Nodes nodes) {
    Verdicts verdicts = new Verdicts(nodes.size());
    nodes.asked().filter(at -> left(pod, nodes, at) == 0).forEach(at -> verdicts.reject(at, FULL));
    return verdicts;
  }

  @Override
  public long[] scoreNodes(Pod pod, Nodes nodes) {
    long[] scores = new long[nodes.size()];
    nodes.asked().forEach(at -> scores[at] = 1000L * left(pod, nodes, at));
    return scores;
  }

  @Override
  public Answer.ToPostFilter postFilter(Pod pod, Nodes nodes, Verdicts verdicts) {
    for (int at = 0; at < nodes.size(); at++) {
      if (verdicts.reason(at) != null && !nodes.podsOn(nodes.name(at)).isEmpty()) {
        String victim = nodes.podsOn(nodes.name(at)).iterator().next().uid();
        return new Nomination(nodes.name(at), List.of(victim));
      }
    }
    return Status.unschedulable("no slot can be made");
  }

  @Override
  public Answer.ToReserve reserve(Pod pod, Node node) {
    PodKey key = Call.current().key();
    reserved
        .computeIfAbsent(node.getMetadata().getName(), name -> new HashMap<>())
        .put(key.uid(), key.attempt());
    return Status.SUCCESS;
  }

  @Override
  public void unreserve(PodKey key, String nodeName) {
    reserved.getOrDefault(nodeName, new HashMap<>()).remove(key.uid(), key.attempt());
  }

  @Override
  public Answer.ToPermit permit(Pod pod, Node node) {
    return arguments.of(pod).together() > 1 ? new Wait(Duration.ofSeconds(30)) : Status.SUCCESS;
  }

  @Override
  public Answer.ToReserve preBind(Pod pod, Node node) {
    return MetadataPatch.annotate(SLOT, "0");
  }

  @Override
  public Status bind(Pod pod, Node node, Map<String, String> annotations) {
    heard.add("bind " + annotations);
    return Status.SKIP;
  }

  @Override
  public void postBind(PodKey key, String nodeName) {
    heard.add("bound " + key + " to " + nodeName);
  }

  @Override
  public void cycleDone(PodKey key, Outcome outcome) {
    heard.add("done " + key + " " + outcome.result());
    if (outcome.result() != CycleOutcome.BOUND) {
      reserved.values().forEach(there -> there.remove(key.uid(), key.attempt()));
    }
  }

  @Override
  public boolean[][] queueingHints(List<Pod> pods, List<ClusterEvent> events) {
    boolean[][] table = new boolean[events.size()][pods.size()];
    for (int row = 0; row < events.size(); row++) {
      boolean frees = events.get(row).before(Pod.class).isPresent();
      for (int column = 0; column < pods.size(); column++) {
        table[row][column] = frees && !pods.get(column).getMetadata().getName().equals("patient");
      }
    }
    return table;
  }

  @Override
  public SortKey sortKey(Pod pod) {
    Integer priority = pod.getSpec().getPriority();
    return SortKey.of(priority == null ? 0 : -priority, pod.getMetadata().getName().length());
  }

  @Override
  public void podsLeft(List<String> uids) {
    heard.add("left " + uids);
  }

  @Override
  public void queueReset(String profile) {
    heard.add("reset " + profile);
  }

  @Override
  public Answer.ToGeneratePlacements generatePlacements(PodGroup group, Pod pod, Nodes nodes) {
    if (group.pods().size() > arguments.of(pod).slots() * nodes.size()) {
      return Status.unschedulable("more pods than slots");
    }
    Placements teams = new Placements();
    for (int at = 0; at < nodes.size(); at++) {
      teams.add(nodes.at(at).getMetadata().getLabels().getOrDefault("team", "free"), at);
    }
    return teams;
  }

  @Override
  public Status placementFeasible(PodGroup group, Pod pod, PlacementProgress progress) {
    int needed = group.pods().size();
    if (progress.scheduled() >= needed) {
      return Status.SUCCESS;
    }
    boolean hopeless = progress.scheduled() + progress.remaining() < needed;
    return Status.of(hopeless ? Code.UNSCHEDULABLE : Code.WAIT, "all pods of the group are needed");
  }

  @Override
  public Answer.ToPodGroupPostFilter podGroupPostFilter(
      PodGroup group, Pod pod, Nodes nodes, Verdicts verdicts) {
    GroupPreemptions proposals = new GroupPreemptions();
    nodes
        .asked()
        .mapToObj(index -> nodes.podsOn(nodes.at(index).getMetadata().getName()))
        .map(placed -> placed.stream().map(PlacedPod::uid).sorted().toList())
        .filter(victims -> !victims.isEmpty())
        .forEach(proposals::add);
    return proposals;
  }

  @Override
  public long[] scorePlacements(
      PodGroup group, Pod pod, Nodes nodes, List<ProposedPlacement> proposed) {
    return proposed.stream()
        .mapToLong(
            each ->
                each.assignments().stream().mapToLong(one -> left(pod, nodes, one.node())).sum())
        .toArray();
  }

  @Override
  public void stateReset(boolean epochChanged) {
    if (epochChanged) {
      reserved.clear();
    }
  }

  @Override
  public void podRemoved(PlacedPod placed) {
    heard.add("gone " + placed.uid());
  }

  /** Serves the plugin. */
  public static void main(String[] flags) {
    Program.main(new Slots(), flags);
  }
}
