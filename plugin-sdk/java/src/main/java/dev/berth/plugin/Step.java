package dev.berth.plugin;

import berth.plugin.v1.State;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.List;

/** A change with its object decoded. */
interface Step {
  void take(Mirror mirror);

  /** Decodes a pod's JSON, or knows it already. */
  interface PodDecoder {
    /** IllegalArgumentException where it is none. */
    Pod decode(String uid, ByteString object);
  }

  /**
   * Decodes changes, in their order.
   *
   * @throws SyncException at the first that can't be decoded
   */
  static List<Step> of(List<State.Change> changes, PodDecoder pods) {
    List<Step> steps = new ArrayList<>(changes.size());
    for (State.Change change : changes) {
      steps.add(of(change, pods));
    }
    return steps;
  }

  private static Step of(State.Change change, PodDecoder pods) {
    return switch (change.getChangeCase()) {
      case NODE_UPSERT -> nodeUpsert(change.getNodeUpsert());
      case NODE_REMOVE -> {
        State.NodeRemove remove = change.getNodeRemove();
        yield mirror -> mirror.takeNode(remove.getIndex(), remove.getName());
      }
      case POD_UPSERT -> {
        PlacedPod placed = placed(change.getPodUpsert(), pods);
        yield mirror -> mirror.putPod(placed);
      }
      case POD_REMOVE -> {
        String uid = change.getPodRemove().getUid();
        yield mirror -> mirror.takePod(uid);
      }
      case OBJECT_UPSERT -> objectUpsert(change.getObjectUpsert());
      case OBJECT_REMOVE -> {
        ObjectKey key = ObjectKey.of(change.getObjectRemove().getKey());
        yield mirror -> mirror.takeObject(key);
      }
      case CHANGE_NOT_SET -> throw SyncException.badObject("a change of an unknown kind");
    };
  }

  private static Step nodeUpsert(State.NodeUpsert upsert) {
    int index = upsert.getIndex();
    String name = upsert.getName();
    try {
      Node node = Json.read(upsert.getObject().toByteArray(), Node.class);
      return mirror -> mirror.putNode(index, name, node);
    } catch (IllegalArgumentException e) {
      throw SyncException.badObject("node \"" + name + "\": " + e.getMessage());
    }
  }

  private static Step objectUpsert(State.ObjectUpsert upsert) {
    ObjectKey key = ObjectKey.of(upsert.getKey());
    try {
      JsonNode object = Json.read(upsert.getObject().toByteArray(), JsonNode.class);
      return mirror -> mirror.putObject(key, object);
    } catch (IllegalArgumentException e) {
      throw SyncException.badObject(key + ": " + e.getMessage());
    }
  }

  /**
   * Decodes a pod that counts on a node.
   *
   * @throws SyncException if that can't be done
   */
  static PlacedPod placed(State.PodUpsert upsert, PodDecoder pods) {
    PodStage stage = PodStage.of(upsert.getStage());
    if (stage == null) {
      throw SyncException.badObject(
          "pod " + upsert.getUid() + ": stage " + upsert.getStageValue() + " is none");
    }
    try {
      Pod pod = pods.decode(upsert.getUid(), upsert.getObject());
      return new PlacedPod(pod, upsert.getUid(), upsert.getNodeName(), stage, upsert.getAttempt());
    } catch (IllegalArgumentException e) {
      throw SyncException.badObject("pod " + upsert.getUid() + ": " + e.getMessage());
    }
  }
}
