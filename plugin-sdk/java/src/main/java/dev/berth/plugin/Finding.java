package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Scheduling;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.EnumSet;
import java.util.Set;

/** The calls that look for a node: from the gate of the queue to making room. */
final class Finding {
  private static final Set<Code> GATE =
      EnumSet.of(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING);
  private static final Set<Code> BEFORE_FILTER =
      EnumSet.of(Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING);
  private static final Set<Code> AFTER_FILTER =
      EnumSet.of(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE);

  private Finding() {}

  static Scheduling.PreEnqueueResponse preEnqueue(
      Asked asked, Scheduling.PreEnqueueRequest request) {
    Pod pod = asked.session.pod(asked.head.getPod());
    Common.Status status =
        asked.plugin instanceof Plugin.PreEnqueue gate
            ? asked.verdict("preEnqueue", GATE, () -> gate.preEnqueue(pod))
            : Asked.SUCCESS;
    return Scheduling.PreEnqueueResponse.newBuilder().setStatus(status).build();
  }

  static Scheduling.FilterResponse filter(Asked asked, Scheduling.FilterRequest request) {
    Pod pod = asked.pod();
    return filtered(asked, pod, request.hasCandidates() ? request.getCandidates() : null).response;
  }

  static Scheduling.ScoreResponse score(Asked asked, Scheduling.ScoreRequest request) {
    Pod pod = asked.pod();
    Nodes nodes =
        asked.session.nodes(asked.head, request.hasCandidates() ? request.getCandidates() : null);
    return scored(asked, pod, nodes);
  }

  static Scheduling.FilterScoreResponse filterScore(
      Asked asked, Scheduling.FilterScoreRequest request) {
    Pod pod = asked.pod();
    Filtered filtered =
        filtered(asked, pod, request.hasCandidates() ? request.getCandidates() : null);
    Scheduling.FilterScoreResponse.Builder made =
        Scheduling.FilterScoreResponse.newBuilder().setFilter(filtered.response);
    if (filtered.passing != null && filtered.passing.count() > 0) {
      made.setScore(scored(asked, pod, filtered.passing));
    }
    return made.build();
  }

  /** The reply, and the nodes that passed, null if none is left to score. */
  private record Filtered(Scheduling.FilterResponse response, Nodes passing) {}

  private static Filtered filtered(Asked asked, Pod pod, Scheduling.Candidates candidates) {
    Common.Status status = preFiltered(asked, pod);
    Nodes nodes = asked.session.nodes(asked.head, candidates);
    Scheduling.FilterResponse.Builder made =
        Scheduling.FilterResponse.newBuilder()
            .setGeneration(asked.session.mirror.generation)
            .setStatus(status);
    if (status.getCode() != Common.Code.CODE_SUCCESS) {
      return new Filtered(made.build(), status.getCode() == Common.Code.CODE_SKIP ? nodes : null);
    }
    try {
      Verdicts verdicts = verdicts(asked.plugin, pod, nodes);
      made.setVerdicts(Packing.verdicts(verdicts, nodes));
      Nodes passing = nodes.passing(verdicts);
      asked.count(nodes.count(), passing.count());
      return new Filtered(made.build(), passing);
    } catch (ContractException e) {
      return new Filtered(made.setStatus(asked.failure(e)).build(), null);
    }
  }

  static Common.Status preFiltered(Asked asked, Pod pod) {
    return asked.plugin instanceof Plugin.PreFilter first
        ? asked.verdict("preFilter", BEFORE_FILTER, () -> first.preFilter(pod))
        : Asked.SUCCESS;
  }

  /**
   * The verdicts by whichever form the author chose, one for each entry of an answer.
   *
   * @throws ContractException where that fails
   */
  static Verdicts verdicts(Plugin plugin, Pod pod, Nodes nodes) {
    if (plugin instanceof Plugin.FilterNodes filter) {
      Verdicts ofAll =
          ContractException.guarded("filterNodes", () -> filter.filterNodes(pod, nodes));
      if (ofAll == null) {
        throw new ContractException("filterNodes: null is no answer here");
      }
      return nodes.entriesOf(ofAll);
    } else if (plugin instanceof Plugin.Filter filter) {
      return ContractException.guarded("filter", () -> each(filter, pod, nodes));
    }
    return new Verdicts(nodes.entries());
  }

  private static Verdicts each(Plugin.Filter plugin, Pod pod, Nodes nodes) {
    Verdicts verdicts = new Verdicts(nodes.entries());
    for (int entry = 0; entry < nodes.entries(); entry++) {
      Reason reason = nodes.asks(entry) ? plugin.filter(pod, nodes.at(nodes.index(entry))) : null;
      if (reason != null) {
        verdicts.reject(entry, reason);
      }
    }
    return verdicts;
  }

  private static Scheduling.ScoreResponse scored(Asked asked, Pod pod, Nodes nodes) {
    Scheduling.ScoreResponse.Builder made =
        Scheduling.ScoreResponse.newBuilder()
            .setGeneration(asked.session.mirror.generation)
            .setStatus(Asked.SUCCESS);
    try {
      long[] points = points(asked.plugin, pod, nodes);
      if (points == null) {
        return made.setStatus(Asked.SKIP).build();
      }
      return made.setScores(Packing.scores(points, asked.session.traits.normalization, nodes))
          .build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }

  private static long[] points(Plugin plugin, Pod pod, Nodes nodes) {
    if (plugin instanceof Plugin.ScoreNodes score) {
      long[] ofAll = ContractException.guarded("scoreNodes", () -> score.scoreNodes(pod, nodes));
      return ofAll == null ? null : nodes.entriesOf(ofAll);
    } else if (plugin instanceof Plugin.Score score) {
      long[] points = new long[nodes.entries()];
      return ContractException.guarded(
          "score",
          () -> {
            nodes
                .askedEntries()
                .forEach(entry -> points[entry] = score.score(pod, nodes.at(nodes.index(entry))));
            return points;
          });
    }
    return null;
  }

  static Scheduling.PostFilterResponse postFilter(
      Asked asked, Scheduling.PostFilterRequest request) {
    Pod pod = asked.pod();
    Nodes nodes = asked.session.nodes(asked.head, null);
    Verdicts verdicts = Packing.unpack(request.getVerdicts(), nodes.size());
    Scheduling.PostFilterResponse.Builder made = Scheduling.PostFilterResponse.newBuilder();
    if (!(asked.plugin instanceof Plugin.PostFilter plugin)) {
      String text = asked.session.traits.name + " makes no room";
      return made.setStatus(Packing.status(Status.unschedulable(text), AFTER_FILTER)).build();
    }
    try {
      Answer.ToPostFilter answer =
          ContractException.guarded("postFilter", () -> plugin.postFilter(pod, nodes, verdicts));
      if (answer instanceof Nomination nomination) {
        return made.setStatus(Asked.SUCCESS)
            .setNominatedNodeName(nomination.nodeName())
            .addAllVictimUids(nomination.victimUids())
            .build();
      }
      return made.setStatus(Packing.status((Status) answer, AFTER_FILTER)).build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }
}
