package dev.berth.plugin.testing;

import berth.plugin.v1.State;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import dev.berth.plugin.ObjectKey;
import dev.berth.plugin.PodStage;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The host's side of the state: nodes by index, pods by UID, other objects by key, and what changed
 * since the last generation.
 */
public final class Cluster {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  long generation = 1;
  final List<String> names = new ArrayList<>();
  private final Map<String, Node> nodes = new LinkedHashMap<>();
  private final Map<String, State.PodUpsert> pods = new LinkedHashMap<>();
  private final Map<ObjectKey, ByteString> objects = new LinkedHashMap<>();
  private final List<State.Change> pending = new ArrayList<>();

  /** Adds or changes a node. */
  public void putNode(Node node) {
    String name = node.getMetadata().getName();
    if (nodes.put(name, node) == null) {
      names.add(name);
    }
    pending.add(change(names.indexOf(name)));
  }

  /** Takes a node away; the last one moves to its index. */
  public void removeNode(String name) {
    int index = names.indexOf(name);
    int last = names.size() - 1;
    names.set(index, names.get(last));
    names.remove(last);
    nodes.remove(name);
    State.NodeRemove.Builder removal = State.NodeRemove.newBuilder().setIndex(index).setName(name);
    pending.add(State.Change.newBuilder().setNodeRemove(removal).build());
  }

  /** Counts a pod on a node. The attempt is that of an assumed pod, else 0. */
  public void putPod(Pod pod, String nodeName, PodStage stage, int attempt) {
    String uid = pod.getMetadata().getUid();
    State.PodUpsert upsert =
        State.PodUpsert.newBuilder()
            .setUid(uid)
            .setNodeName(nodeName)
            .setStage(State.PodStage.valueOf("POD_STAGE_" + stage))
            .setObject(encoded(pod))
            .setAttempt(attempt)
            .build();
    pods.put(uid, upsert);
    pending.add(State.Change.newBuilder().setPodUpsert(upsert).build());
  }

  /** Counts a pod no longer. */
  public void removePod(Pod pod) {
    String uid = pod.getMetadata().getUid();
    pods.remove(uid);
    State.PodRemove.Builder removal = State.PodRemove.newBuilder().setUid(uid);
    pending.add(State.Change.newBuilder().setPodRemove(removal).build());
  }

  /** Brings an object of a watched kind; anything that Jackson writes as its JSON. */
  public void putObject(ObjectKey key, Object object) {
    objects.put(key, encoded(object));
    pending.add(change(key));
  }

  /** Takes one away. */
  public void removeObject(ObjectKey key) {
    objects.remove(key);
    State.ObjectRemove.Builder removal = State.ObjectRemove.newBuilder().setKey(message(key));
    pending.add(State.Change.newBuilder().setObjectRemove(removal).build());
  }

  boolean isChanged() {
    return !pending.isEmpty();
  }

  /** Everything since the last step, as a step to a new generation. */
  State.Delta step() {
    State.Delta delta =
        State.Delta.newBuilder()
            .setBaseGeneration(generation)
            .setGeneration(generation + 1)
            .addAllChanges(pending)
            .setNodeCount(names.size())
            .build();
    generation++;
    pending.clear();
    return delta;
  }

  /** The full state. */
  List<State.SyncRequest> transfer(String epoch) {
    pending.clear();
    State.Chunk.Builder chunk = State.Chunk.newBuilder();
    for (int index = 0; index < names.size(); index++) {
      chunk.addChanges(change(index));
    }
    pods.values().forEach(upsert -> chunk.addChangesBuilder().setPodUpsert(upsert));
    objects.keySet().forEach(key -> chunk.addChanges(change(key)));
    State.Commit.Builder commit =
        State.Commit.newBuilder().setGeneration(generation).setNodeCount(names.size());
    return List.of(
        State.SyncRequest.newBuilder().setBegin(State.Begin.newBuilder().setEpoch(epoch)).build(),
        State.SyncRequest.newBuilder().setChunk(chunk).build(),
        State.SyncRequest.newBuilder().setCommit(commit).build());
  }

  private State.Change change(int index) {
    State.NodeUpsert.Builder upsert =
        State.NodeUpsert.newBuilder()
            .setIndex(index)
            .setName(names.get(index))
            .setObject(encoded(nodes.get(names.get(index))));
    return State.Change.newBuilder().setNodeUpsert(upsert).build();
  }

  private State.Change change(ObjectKey key) {
    State.ObjectUpsert.Builder upsert =
        State.ObjectUpsert.newBuilder().setKey(message(key)).setObject(objects.get(key));
    return State.Change.newBuilder().setObjectUpsert(upsert).build();
  }

  private static State.ObjectKey message(ObjectKey key) {
    return State.ObjectKey.newBuilder()
        .setGroup(key.group())
        .setVersion(key.version())
        .setResource(key.resource())
        .setNamespace(key.namespace())
        .setName(key.name())
        .build();
  }

  /** An object's JSON. */
  static ByteString encoded(Object object) {
    try {
      return ByteString.copyFrom(MAPPER.writeValueAsBytes(object));
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e);
    }
  }
}
