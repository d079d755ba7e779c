package dev.berth.plugin;

import berth.plugin.v1.State;
import com.fasterxml.jackson.databind.JsonNode;
import io.fabric8.kubernetes.api.model.Node;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * What the scheduler's state stream said, up to one generation: nodes by dense index, pods by UID,
 * other objects by key.
 *
 * <pre>
 * (nothing) --commit--> (epoch, generation) --delta--> (epoch, later generation)
 *     ^                        |
 *     +---- SyncException -----+    a mirror that can't follow holds nothing, never something wrong
 * </pre>
 */
final class Mirror {
  private final Plugin.StateListener listener;
  String epoch = "";
  long generation;

  /** The first generation from which on every node has kept its index. */
  long layoutSince;

  final List<Node> nodes = new ArrayList<>();
  final List<String> names = new ArrayList<>();
  final Map<String, Integer> index = new HashMap<>();
  final Map<String, PlacedPod> pods = new HashMap<>();
  final Map<String, Map<String, PlacedPod>> onNode = new HashMap<>();
  final Map<ObjectKey, JsonNode> objects = new HashMap<>();

  /** The epoch last held, which a mirror that lost its way remembers. */
  private String lastEpoch = "";

  private boolean moved;

  Mirror(Plugin plugin) {
    listener = plugin instanceof Plugin.StateListener interested ? interested : null;
  }

  /** Holds what a full transfer brought, and nothing else. */
  void replace(String newEpoch, State.Commit commit, List<Step> steps) {
    boolean changed = !newEpoch.equals(lastEpoch);
    lastEpoch = newEpoch;
    clear();
    hook("stateReset", () -> listener.stateReset(changed));
    apply(steps, commit.getNodeCount());
    epoch = newEpoch;
    generation = commit.getGeneration();
    layoutSince = generation;
    hook("stateSettled", () -> listener.stateSettled());
  }

  /** Takes one step; a step behind what is held changes nothing. With a gap what is held stays. */
  void follow(State.Delta delta, Function<List<State.Change>, List<Step>> decode) {
    if (delta.getGeneration() <= generation) {
      return;
    }
    if (delta.getBaseGeneration() != generation) {
      String steps = delta.getBaseGeneration() + " to " + delta.getGeneration();
      throw new SyncException(
          State.NackReason.NACK_REASON_GAP, "delta " + steps + ", but " + generation + " is held");
    }
    List<Step> steps;
    try {
      steps = decode.apply(delta.getChangesList());
    } catch (SyncException e) {
      drop();
      throw e;
    }
    if (apply(steps, delta.getNodeCount())) {
      layoutSince = delta.getGeneration();
    }
    generation = delta.getGeneration();
  }

  /** Holds nothing, until the next full transfer. */
  void drop() {
    clear();
    epoch = "";
    layoutSince = 0;
  }

  private void clear() {
    generation = 0;
    nodes.clear();
    names.clear();
    index.clear();
    pods.clear();
    onNode.clear();
    objects.clear();
  }

  /** Takes the steps and checks the count; true if nodes came, went or moved. */
  private boolean apply(List<Step> steps, int nodeCount) {
    int before = nodes.size();
    moved = false;
    try {
      steps.forEach(step -> step.take(this));
      if (nodes.size() != nodeCount) {
        throw SyncException.mismatch(nodes.size() + " nodes are held, the host has " + nodeCount);
      }
    } catch (SyncException e) {
      drop();
      throw e;
    }
    return moved || nodes.size() != before;
  }

  void putNode(int at, String name, Node node) {
    Integer known = index.get(name);
    if (known == null && at == nodes.size()) {
      nodes.add(node);
      names.add(name);
      index.put(name, at);
    } else if (known != null && known == at) {
      nodes.set(at, node);
    } else {
      throw SyncException.mismatch("node \"" + name + "\" can't be at index " + at);
    }
    hook("nodeUpserted", () -> listener.nodeUpserted(at, node));
  }

  void takeNode(int at, String name) {
    Integer known = index.get(name);
    if (known == null || known != at) {
      throw SyncException.mismatch("node \"" + name + "\" is not at index " + at);
    }
    int last = nodes.size() - 1;
    index.remove(name);
    if (at != last) {
      nodes.set(at, nodes.get(last));
      names.set(at, names.get(last));
      index.put(names.get(at), at);
    }
    nodes.remove(last);
    names.remove(last);
    moved = true;
    hook("nodeRemoved", () -> listener.nodeRemoved(at, last));
  }

  void putPod(PlacedPod placed) {
    PlacedPod before = pods.get(placed.uid());
    if (before != null && !before.nodeName().equals(placed.nodeName())) {
      takePod(placed.uid());
    }
    pods.put(placed.uid(), placed);
    onNode.computeIfAbsent(placed.nodeName(), name -> new HashMap<>()).put(placed.uid(), placed);
    hook("podUpserted", () -> listener.podUpserted(placed));
  }

  void takePod(String uid) {
    PlacedPod placed = pods.remove(uid);
    if (placed == null) {
      return;
    }
    Map<String, PlacedPod> there = onNode.get(placed.nodeName());
    there.remove(uid);
    if (there.isEmpty()) {
      onNode.remove(placed.nodeName());
    }
    hook("podRemoved", () -> listener.podRemoved(placed));
  }

  void putObject(ObjectKey key, JsonNode object) {
    objects.put(key, object);
    hook("objectUpserted", () -> listener.objectUpserted(key, object));
  }

  void takeObject(ObjectKey key) {
    if (objects.remove(key) != null) {
      hook("objectRemoved", () -> listener.objectRemoved(key));
    }
  }

  /** Calls the author; what fails may have left the author's columns wrong, so all is sent anew. */
  private void hook(String name, Runnable function) {
    if (listener == null) {
      return;
    }
    try {
      ContractException.guarded(
          name,
          () -> {
            function.run();
            return null;
          });
    } catch (ContractException e) {
      drop();
      throw SyncException.badObject(e.getMessage());
    }
  }
}
