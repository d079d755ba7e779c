package dev.berth.plugin;

import berth.plugin.v1.Group;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** The calls about a pod group as a whole: whether it may go, and who could be evicted for it. */
final class Grouping {
  private static final Set<Code> VERDICTS = EnumSet.of(Code.WAIT, Code.UNSCHEDULABLE);
  private static final Set<Code> REJECTIONS =
      EnumSet.of(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE);

  private Grouping() {}

  static Group.PlacementFeasibleResponse feasible(
      Asked asked, Group.PlacementFeasibleRequest request) {
    Pod pod = asked.session.pod(asked.head.getPod());
    PodGroup group = PodGroup.of(request.getGroup());
    Group.PlacementFeasibleResponse.Builder made = Group.PlacementFeasibleResponse.newBuilder();
    for (Group.PlacementProgress each : request.getProgressList()) {
      PlacementProgress progress = new PlacementProgress(each.getRemaining(), each.getScheduled());
      made.addVerdicts(
          asked.plugin instanceof Plugin.PlacementFeasible plugin
              ? asked.verdict(
                  "placementFeasible",
                  VERDICTS,
                  () -> plugin.placementFeasible(group, pod, progress))
              : Asked.SUCCESS);
    }
    return made.build();
  }

  static Group.PodGroupPostFilterResponse postFilter(
      Asked asked, Group.PodGroupPostFilterRequest request) {
    Pod pod = asked.pod();
    Nodes nodes = asked.session.nodes(asked.head, null);
    Verdicts verdicts = Packing.unpack(request.getVerdicts(), nodes.size());
    Group.PodGroupPostFilterResponse.Builder made =
        Group.PodGroupPostFilterResponse.newBuilder()
            .setGeneration(asked.session.mirror.generation);
    if (!(asked.plugin instanceof Plugin.PodGroupPostFilter plugin)) {
      Status none = Status.unschedulable(asked.session.traits.name + " makes no room");
      return made.setStatus(Packing.status(none, REJECTIONS)).build();
    }
    PodGroup group = PodGroup.of(request.getGroup());
    try {
      Answer.ToPodGroupPostFilter answer =
          ContractException.guarded(
              "podGroupPostFilter", () -> plugin.podGroupPostFilter(group, pod, nodes, verdicts));
      if (answer instanceof GroupPreemptions proposals) {
        for (List<String> victims : proposals.sets) {
          made.addProposals(Group.GroupPreemption.newBuilder().addAllVictimUids(victims));
        }
        return made.setStatus(Asked.SUCCESS).build();
      }
      return made.setStatus(Packing.status((Status) answer, REJECTIONS)).build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }
}
