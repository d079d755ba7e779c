package dev.berth.plugin;

import berth.plugin.v1.PlacementOuterClass;
import java.util.List;

/**
 * A pod group, and its pods that have no node; those that have one are among the pods of {@link
 * Nodes}.
 */
public record PodGroup(String namespace, String name, List<PodKey> pods) {
  static PodGroup of(PlacementOuterClass.PodGroup message) {
    List<PodKey> pods = message.getPodsList().stream().map(PodKey::of).toList();
    return new PodGroup(message.getNamespace(), message.getName(), pods);
  }
}
