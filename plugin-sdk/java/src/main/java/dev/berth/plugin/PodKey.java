package dev.berth.plugin;

import berth.plugin.v1.Common;

/** One attempt at one pod; what is held for a pod is held under UID and attempt. */
public record PodKey(String uid, int attempt, String namespace, String name) {
  static PodKey of(Common.PodRef pod) {
    return new PodKey(pod.getUid(), pod.getAttempt(), pod.getNamespace(), pod.getName());
  }

  @Override
  public String toString() {
    return namespace + "/" + name;
  }
}
