package dev.berth.locality;

import com.fasterxml.jackson.databind.JsonNode;
import dev.berth.plugin.Action;
import dev.berth.plugin.Arguments;
import dev.berth.plugin.Call;
import dev.berth.plugin.ClusterEvent;
import dev.berth.plugin.Code;
import dev.berth.plugin.EventInterest;
import dev.berth.plugin.Metric;
import dev.berth.plugin.Nodes;
import dev.berth.plugin.ObjectKey;
import dev.berth.plugin.Plugin;
import dev.berth.plugin.Program;
import dev.berth.plugin.Reason;
import dev.berth.plugin.Requeue;
import dev.berth.plugin.Status;
import dev.berth.plugin.Traits;
import dev.berth.plugin.Verdicts;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;

/** Prefers nodes near which a pod's data sets are cached, or lets it run on no others. */
public final class DataLocality
    implements Plugin.PreFilter,
        Plugin.FilterNodes,
        Plugin.ScoreNodes,
        Plugin.Hint,
        Plugin.StateListener {
  static final Reason TOO_FAR =
      Reason.unresolvable("node(s) did not have the pod's data sets cached as near as it requires");

  private final Arguments<Settings> arguments = Arguments.of(Settings.DEFAULT, Settings::check);
  private final Requeue requeue = new Requeue();
  private final Map<Dataset.Name, Dataset> datasets = new HashMap<>();
  private final Map<List<String>, Topology> topologies = new HashMap<>(); // by labels
  private boolean settled;

  @Override
  public Traits traits() {
    return Traits.named("data-locality")
        .version("0.2.0")
        .arguments(arguments)
        .watch(Dataset.KIND)
        .events(
            EventInterest.of(Dataset.EVENTS, Action.ADD, Action.UPDATE).sameNamespace(),
            EventInterest.of("Node", Action.ADD, Action.UPDATE_NODE_LABEL))
        .podFields(
            "/metadata/namespace",
            "/metadata/annotations/" + Demand.DATASETS.replace("/", "~1"),
            "/metadata/annotations/" + Demand.REQUIRED.replace("/", "~1"),
            "/spec/schedulerName")
        // Caches are no part of a node's row: where they move, requeue says so.
        .nodeLocal()
        .requeue(requeue);
  }

  @Override
  public Status preFilter(Pod pod) {
    Demand demand = Demand.of(pod);
    if (!demand.isStrict()) {
      return Status.SKIP;
    }
    return List.of("node", "rack", "zone").contains(demand.required())
        ? Status.SUCCESS
        : Status.of(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "annotation " + Demand.REQUIRED + ": expected node, rack or zone");
  }

  @Override
  public Verdicts filterNodes(Pod pod, Nodes nodes) {
    Demand demand = Demand.of(pod);
    int wanted = settings().requiredPercent();
    Verdicts verdicts = new Verdicts(nodes.size());
    for (Dataset.Name name : demand.names()) {
      IntUnaryOperator share = share(shares(name, nodes), demand.required());
      nodes
          .asked()
          .filter(at -> share.applyAsInt(at) < wanted)
          .forEach(at -> verdicts.reject(at, TOO_FAR));
    }
    return verdicts;
  }

  private static IntUnaryOperator share(Shares shares, String level) {
    return switch (level) {
      case "node" -> shares::node;
      case "rack" -> shares::rack;
      default -> shares::zone;
    };
  }

  /** The mean of what the data sets are worth there, weighted by size where all sizes are known. */
  @Override
  public long[] scoreNodes(Pod pod, Nodes nodes) {
    List<Dataset.Name> names = Demand.of(pod).names();
    if (names.isEmpty()) {
      return null;
    }
    boolean sized = names.stream().allMatch(name -> dataset(name).bytes() > 0);
    BigInteger[] sums = new BigInteger[nodes.size()];
    BigInteger whole = BigInteger.ZERO;
    for (Dataset.Name name : names) {
      BigInteger size = BigInteger.valueOf(sized ? dataset(name).bytes() : 1);
      whole = whole.add(size);
      Shares shares = shares(name, nodes);
      nodes
          .asked()
          .forEach(
              at -> {
                long worth = shares.worth(at, settings().weights());
                BigInteger counted = size.multiply(BigInteger.valueOf(worth));
                sums[at] = sums[at] == null ? counted : sums[at].add(counted);
              });
    }
    BigInteger hundredfold = whole.multiply(BigInteger.valueOf(100));
    long[] scores = new long[nodes.size()];
    nodes.asked().forEach(at -> scores[at] = sums[at].divide(hundredfold).longValue());
    return scores;
  }

  /**
   * Tries a pod again when more of its data is cached, or a node comes where its data may be near.
   */
  @Override
  public boolean queueingHint(Pod pod, ClusterEvent event) {
    Demand demand = Demand.of(pod);
    if (event.resource().equals("Node")) {
      String node = event.after(Node.class).map(each -> each.getMetadata().getName()).orElse("");
      return !demand.required().equals("node")
          || demand.names().stream()
              .allMatch(name -> dataset(name).cachedPercent().containsKey(node));
    }
    JsonNode now = event.after(JsonNode.class).orElseThrow();
    Dataset before = event.before(JsonNode.class).map(Dataset::of).orElse(Dataset.UNKNOWN);
    String name = now.at("/metadata/name").asText();
    return demand.names().stream().anyMatch(each -> each.name().equals(name))
        && Dataset.of(now).hasMoreThan(before);
  }

  private Settings settings() {
    return arguments.of(Call.current().profile().name());
  }

  private Dataset dataset(Dataset.Name name) {
    return datasets.getOrDefault(name, Dataset.UNKNOWN);
  }

  private Shares shares(Dataset.Name name, Nodes nodes) {
    Settings settings = settings();
    Topology topology =
        topologies.computeIfAbsent(
            List.of(settings.rackLabel(), settings.zoneLabel()),
            labels -> new Topology(labels.get(0), labels.get(1), nodes));
    return new Shares(dataset(name), nodes, topology);
  }

  @Override
  public void profileRemoved(String profile) {
    topologies.clear(); // those that are still wanted are made again
  }

  @Override
  public void stateReset(boolean epochChanged) {
    settled = false;
    datasets.clear();
    topologies.clear();
  }

  @Override
  public void stateSettled() {
    settled = true;
  }

  @Override
  public void nodeUpserted(int index, Node node) {
    topologies.values().forEach(each -> each.put(index, node));
  }

  @Override
  public void nodeRemoved(int index, int last) {
    topologies.values().forEach(each -> each.remove(index, last));
  }

  @Override
  public void objectUpserted(ObjectKey key, JsonNode object) {
    Dataset now = Dataset.of(object);
    if (!now.equals(datasets.put(Dataset.Name.of(key), now))) {
      moved(key);
    }
  }

  @Override
  public void objectRemoved(ObjectKey key) {
    datasets.remove(Dataset.Name.of(key));
    moved(key);
  }

  /**
   * Has the scheduler ask about all nodes anew; which pods are tried again is the hints' matter.
   */
  private void moved(ObjectKey key) {
    if (settled) {
      requeue.pods("the caches of " + key.namespace() + "/" + key.name() + " changed", List.of());
    }
  }

  @Override
  public List<Metric> metrics() {
    Metric.Sample known = new Metric.Sample(Map.of(), datasets.size());
    return List.of(
        new Metric(
            "data_locality_datasets",
            Metric.Kind.GAUGE,
            "Data sets that are known.",
            List.of(known)));
  }

  @Override
  public Object state() {
    Map<String, Dataset> shown = new TreeMap<>();
    datasets.forEach((name, dataset) -> shown.put(name.namespace() + "/" + name.name(), dataset));
    return shown;
  }

  /** Serves the plugin. */
  public static void main(String[] flags) {
    Program.main(new DataLocality(), flags);
  }
}
