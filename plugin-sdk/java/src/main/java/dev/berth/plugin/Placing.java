package dev.berth.plugin;

import berth.plugin.v1.PlacementOuterClass;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** The calls about pod groups: where one may go as a whole, and how good each place is. */
final class Placing {
  private static final Set<Code> NO_PLACEMENTS =
      EnumSet.of(Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE);

  private Placing() {}

  static PlacementOuterClass.GeneratePlacementsResponse generate(
      Asked asked, PlacementOuterClass.GeneratePlacementsRequest request) {
    Pod pod = asked.pod();
    Nodes nodes =
        asked.session.nodes(asked.head, request.hasCandidates() ? request.getCandidates() : null);
    PlacementOuterClass.GeneratePlacementsResponse.Builder made =
        PlacementOuterClass.GeneratePlacementsResponse.newBuilder()
            .setGeneration(asked.session.mirror.generation);
    if (!(asked.plugin instanceof Plugin.GeneratePlacements plugin)) {
      return made.setStatus(Asked.SKIP).build();
    }
    PodGroup group = PodGroup.of(request.getGroup());
    try {
      Answer.ToGeneratePlacements answer =
          ContractException.guarded(
              "generatePlacements", () -> plugin.generatePlacements(group, pod, nodes));
      if (answer instanceof Placements placements) {
        return made.setStatus(Asked.SUCCESS).addAllPlacements(pack(placements, nodes)).build();
      }
      return made.setStatus(Packing.status((Status) answer, NO_PLACEMENTS)).build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }

  /** The sets without nodes that were not asked about; one that has no node then is none. */
  private static List<PlacementOuterClass.Placement> pack(Placements placements, Nodes nodes) {
    BitSet asked = new BitSet(nodes.size());
    nodes.asked().forEach(asked::set);
    List<PlacementOuterClass.Placement> packed = new ArrayList<>();
    placements.sets.forEach(
        (name, set) -> {
          if (set.length() > nodes.size()) {
            String node = "node " + (set.length() - 1) + " of " + nodes.size();
            throw new ContractException("placement \"" + name + "\": " + node);
          }
          BitSet chosen = (BitSet) set.clone(); // the author may keep the sets
          chosen.and(asked);
          if (!chosen.isEmpty()) {
            ByteString bitmap = Packing.bits(chosen, nodes.size());
            packed.add(
                PlacementOuterClass.Placement.newBuilder().setName(name).setBitmap(bitmap).build());
          }
        });
    return packed;
  }

  static PlacementOuterClass.ScorePlacementsResponse score(
      Asked asked, PlacementOuterClass.ScorePlacementsRequest request) {
    Pod pod = asked.pod();
    Nodes nodes = asked.session.nodes(asked.head, null);
    PodGroup group = PodGroup.of(request.getGroup());
    List<ProposedPlacement> proposed =
        request.getProposedList().stream()
            .map(each -> ProposedPlacement.of(each, group, nodes.size()))
            .toList();
    PlacementOuterClass.ScorePlacementsResponse.Builder made =
        PlacementOuterClass.ScorePlacementsResponse.newBuilder()
            .setGeneration(asked.session.mirror.generation);
    if (!(asked.plugin instanceof Plugin.ScorePlacements plugin)) {
      return made.setStatus(Asked.SKIP).build();
    }
    try {
      long[] points =
          ContractException.guarded(
              "scorePlacements", () -> plugin.scorePlacements(group, pod, nodes, proposed));
      if (points == null) {
        return made.setStatus(Asked.SKIP).build();
      }
      Normalization normalization = asked.session.traits.normalization;
      made.setScores(Packing.scores(points, normalization, proposed.size()));
      return made.setStatus(Asked.SUCCESS).build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }
}
