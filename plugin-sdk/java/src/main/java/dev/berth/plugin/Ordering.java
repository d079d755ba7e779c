package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Queueing;
import io.fabric8.kubernetes.api.model.Pod;

/** Where pods stand in the queue. */
final class Ordering {
  private Ordering() {}

  /** The key of each pod; one that the plugin fails for has the key 0. */
  static Queueing.SortKeysResponse answer(Session session, Queueing.SortKeysRequest request) {
    session.checkProfile(request.getProfile());
    Queueing.SortKeysResponse.Builder made = Queueing.SortKeysResponse.newBuilder();
    if (!(session.plugin instanceof Plugin.QueueSort plugin)) {
      request.getPodsList().forEach(each -> made.addKeysBuilder());
      return made.build();
    }
    if (request.getAnew()) {
      ContractException.tell("queueReset", () -> plugin.queueReset(request.getProfile()));
    }
    if (request.getLeftUidsCount() > 0) {
      ContractException.tell("podsLeft", () -> plugin.podsLeft(request.getLeftUidsList()));
    }
    request.getPodsList().forEach(each -> made.addKeys(key(session, plugin, each)));
    return made.build();
  }

  private static Queueing.SortKey key(Session session, Plugin.QueueSort plugin, Common.PodRef ref) {
    Pod pod = session.waiting(ref);
    if (pod == null) {
      return Queueing.SortKey.getDefaultInstance();
    }
    try {
      return ContractException.guarded("sortKey", () -> plugin.sortKey(pod).message());
    } catch (ContractException logged) {
      return Queueing.SortKey.getDefaultInstance();
    }
  }
}
