package dev.berth.plugin.testing;

import berth.plugin.v1.Common;
import berth.plugin.v1.PlacementOuterClass;
import berth.plugin.v1.Scheduling;
import dev.berth.plugin.PlacementProgress;
import dev.berth.plugin.Status;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A pod group to ask the plugin about: {@link Host#group} makes it. */
public final class Group {
  private final Host host;
  private final String name;
  private final List<Pod> pods;

  Group(Host host, String name, List<Pod> pods) {
    this.host = host;
    this.name = name;
    this.pods = pods;
  }

  /** What the plugin says of the group, and the nodes of each placement. */
  public record Placed(Status status, Map<String, List<String>> placements) {}

  /** What the plugin says of proposals, and the raw score of each. */
  public record Scored(Status status, List<Long> scores) {}

  /** Asks for placements, made of all nodes or those named. */
  public Placed placements(String... nodeNames) {
    host.update();
    PlacementOuterClass.GeneratePlacementsRequest.Builder request =
        PlacementOuterClass.GeneratePlacementsRequest.newBuilder()
            .setCall(host.call(pods.get(0)))
            .setGroup(message());
    if (nodeNames.length > 0) {
      request.setCandidates(
          Scheduling.Candidates.newBuilder().setBitmap(host.bitmap(List.of(nodeNames))));
    }
    PlacementOuterClass.GeneratePlacementsResponse response =
        host.placement().generatePlacements(request.build());
    Map<String, List<String>> placements = new LinkedHashMap<>();
    for (PlacementOuterClass.Placement each : response.getPlacementsList()) {
      BitSet nodes = BitSet.valueOf(each.getBitmap().toByteArray());
      placements.put(each.getName(), nodes.stream().mapToObj(host.cluster.names::get).toList());
    }
    return new Placed(Host.status(response.getStatus()), placements);
  }

  /** Asks about proposals, each node names by pod names; a proposal has the nodes that it uses. */
  public Scored scores(List<Map<String, String>> proposals) {
    host.update();
    PlacementOuterClass.ScorePlacementsRequest.Builder request =
        PlacementOuterClass.ScorePlacementsRequest.newBuilder()
            .setCall(host.call(pods.get(0)))
            .setGroup(message());
    proposals.forEach(each -> request.addProposed(proposal(each)));
    PlacementOuterClass.ScorePlacementsResponse response =
        host.placement().scorePlacements(request.build());
    List<Long> scores = new ArrayList<>();
    for (int i = 0; response.hasScores() && i < proposals.size(); i++) {
      scores.add(Host.number(response.getScores(), i));
    }
    return new Scored(Host.status(response.getStatus()), scores);
  }

  /** What the plugin says of the group, and the victims of each proposal. */
  public record Proposed(Status status, List<List<String>> victims) {}

  /** Asks for the verdict at each number of pods. */
  public List<Status> feasible(PlacementProgress... progress) {
    berth.plugin.v1.Group.PlacementFeasibleRequest.Builder request =
        berth.plugin.v1.Group.PlacementFeasibleRequest.newBuilder()
            .setCall(host.call(pods.get(0)))
            .setGroup(message());
    for (PlacementProgress each : progress) {
      request.addProgress(
          berth.plugin.v1.Group.PlacementProgress.newBuilder()
              .setRemaining(each.remaining())
              .setScheduled(each.scheduled()));
    }
    return host.groups().placementFeasible(request.build()).getVerdictsList().stream()
        .map(Host::status)
        .toList();
  }

  /** Asks for pods that could be evicted. */
  public Proposed proposals() {
    host.update();
    berth.plugin.v1.Group.PodGroupPostFilterResponse response =
        host.groups()
            .podGroupPostFilter(
                berth.plugin.v1.Group.PodGroupPostFilterRequest.newBuilder()
                    .setCall(host.call(pods.get(0)))
                    .setGroup(message())
                    .build());
    List<List<String>> victims = new ArrayList<>();
    response.getProposalsList().forEach(each -> victims.add(List.copyOf(each.getVictimUidsList())));
    return new Proposed(Host.status(response.getStatus()), victims);
  }

  private PlacementOuterClass.PodGroup message() {
    PlacementOuterClass.PodGroup.Builder made =
        PlacementOuterClass.PodGroup.newBuilder()
            .setNamespace(pods.get(0).getMetadata().getNamespace())
            .setName(name);
    for (Pod pod : pods) {
      made.addPods(Common.PodRef.newBuilder(host.call(pod).getPod()).clearObject());
    }
    return made.build();
  }

  private PlacementOuterClass.ProposedPlacement proposal(Map<String, String> nodes) {
    List<String> names = List.copyOf(nodes.values());
    PlacementOuterClass.ProposedPlacement.Builder made =
        PlacementOuterClass.ProposedPlacement.newBuilder()
            .setPlacement(
                PlacementOuterClass.Placement.newBuilder()
                    .setName("proposal")
                    .setBitmap(host.bitmap(names)));
    for (int i = 0; i < pods.size(); i++) {
      String node = nodes.get(pods.get(i).getMetadata().getName());
      if (node != null) {
        made.addPodIndices(i).addNodeIndices(host.cluster.names.indexOf(node));
      }
    }
    return made.build();
  }
}
