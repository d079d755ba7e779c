package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Scheduling;
import berth.plugin.v1.State;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Filter on simulated evictions and nominations. The pods are taken from the mirror and put into
 * it, so the author's methods and hooks see them like any others, and everything is put back before
 * the answer.
 */
final class Overlays {
  private final Asked asked;
  private final Mirror mirror;
  private final Pod pod;
  private final List<Scheduling.Overlay> overlays;

  private Overlays(Asked asked, Pod pod, List<Scheduling.Overlay> overlays) {
    this.asked = asked;
    this.mirror = asked.session.mirror;
    this.pod = pod;
    this.overlays = overlays;
  }

  static Scheduling.FilterOverlaysResponse filterOverlays(
      Asked asked, Scheduling.FilterOverlaysRequest request) {
    Pod pod = asked.pod();
    Common.Status status = Finding.preFiltered(asked, pod);
    Nodes nodes = asked.session.nodes(asked.head, null);
    for (Scheduling.Overlay overlay : request.getOverlaysList()) {
      if (Integer.compareUnsigned(overlay.getNodeIndex(), nodes.size()) >= 0) {
        throw CallException.invalid(
            "overlay of node " + overlay.getNodeIndex() + ": there are " + nodes.size());
      }
    }
    Scheduling.FilterOverlaysResponse.Builder made =
        Scheduling.FilterOverlaysResponse.newBuilder()
            .setGeneration(asked.session.mirror.generation)
            .setStatus(status);
    if (status.getCode() != Common.Code.CODE_SUCCESS) {
      return made.build();
    }
    try {
      return made.setVerdicts(new Overlays(asked, pod, request.getOverlaysList()).verdicts())
          .build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }

  /** Answers all overlays, as many at once as touch different nodes. */
  private Scheduling.Verdicts verdicts() {
    Verdicts all = new Verdicts(overlays.size());
    List<Integer> rest = new ArrayList<>();
    for (int i = 0; i < overlays.size(); i++) {
      rest.add(i);
    }
    while (!rest.isEmpty()) {
      Set<Integer> nodes = new HashSet<>();
      List<Integer> round = new ArrayList<>();
      List<Integer> later = new ArrayList<>();
      rest.forEach(i -> (nodes.add(overlays.get(i).getNodeIndex()) ? round : later).add(i));
      Verdicts verdicts = round(round);
      for (int i : round) {
        Reason reason = verdicts.reason(overlays.get(i).getNodeIndex());
        if (reason != null) {
          all.reject(i, reason);
        }
      }
      rest = later;
    }
    return Packing.each(all.codes, all.reasons);
  }

  /** Puts overlays on, asks about their nodes, and takes them off. */
  private Verdicts round(List<Integer> round) {
    byte[] candidates = new byte[(mirror.nodes.size() + 7) / 8];
    Deque<Runnable> undo = new ArrayDeque<>();
    try {
      for (int i : round) {
        int at = overlays.get(i).getNodeIndex();
        candidates[at >> 3] |= (byte) (1 << (at & 7));
        putOn(overlays.get(i), undo);
      }
      return Finding.verdicts(asked.plugin, pod, new Nodes(mirror, candidates));
    } catch (SyncException e) {
      if (mirror.generation == 0) { // a hook failed, and the author's columns may be wrong
        undo.clear();
        throw lost(e);
      }
      throw CallException.invalid("overlay: " + e.getMessage());
    } finally {
      takeOff(undo);
    }
  }

  private void takeOff(Deque<Runnable> undo) {
    try {
      while (!undo.isEmpty()) {
        undo.pop().run();
      }
    } catch (SyncException e) {
      throw lost(e);
    }
  }

  private CallException lost(SyncException problem) {
    mirror.drop();
    asked.session.announce();
    return CallException.refused(
        CallException.NOT_SYNCED, "an overlay could not be taken off: " + problem.getMessage());
  }

  private void putOn(Scheduling.Overlay overlay, Deque<Runnable> undo) {
    String nodeName = mirror.names.get(overlay.getNodeIndex());
    for (String uid : overlay.getRemovedPodUidsList()) {
      PlacedPod before = mirror.pods.get(uid);
      if (before != null && before.nodeName().equals(nodeName)) {
        undo.push(() -> mirror.putPod(before));
        mirror.takePod(uid);
      }
    }
    for (State.PodUpsert upsert : overlay.getAddedPodsList()) {
      PlacedPod sent = Step.placed(upsert, asked.session.pods::decode);
      PlacedPod placed =
          new PlacedPod(sent.pod(), sent.uid(), nodeName, sent.stage(), sent.attempt());
      PlacedPod before = mirror.pods.get(placed.uid());
      undo.push(() -> putBack(placed.uid(), before));
      mirror.putPod(placed);
    }
  }

  private void putBack(String uid, PlacedPod before) {
    if (before == null) {
      mirror.takePod(uid);
    } else {
      mirror.putPod(before);
    }
  }
}
