package dev.berth.plugin;

import berth.plugin.v1.Identity;
import berth.plugin.v1.Identity.ExtensionPoint;
import com.google.protobuf.ByteString;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** The plugin's introduction, read off its interfaces and its traits. */
final class Capabilities {
  private static final Pattern DNS_LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");

  private static final Map<Class<? extends Plugin>, ExtensionPoint> POINTS = new LinkedHashMap<>();

  static {
    POINTS.put(Plugin.PreEnqueue.class, ExtensionPoint.EXTENSION_POINT_PRE_ENQUEUE);
    POINTS.put(Plugin.PreFilter.class, ExtensionPoint.EXTENSION_POINT_FILTER);
    POINTS.put(Plugin.Filter.class, ExtensionPoint.EXTENSION_POINT_FILTER);
    POINTS.put(Plugin.FilterNodes.class, ExtensionPoint.EXTENSION_POINT_FILTER);
    POINTS.put(Plugin.PostFilter.class, ExtensionPoint.EXTENSION_POINT_POST_FILTER);
    POINTS.put(Plugin.Score.class, ExtensionPoint.EXTENSION_POINT_SCORE);
    POINTS.put(Plugin.ScoreNodes.class, ExtensionPoint.EXTENSION_POINT_SCORE);
    POINTS.put(Plugin.Reserve.class, ExtensionPoint.EXTENSION_POINT_RESERVE);
    POINTS.put(Plugin.Permit.class, ExtensionPoint.EXTENSION_POINT_PERMIT);
    POINTS.put(Plugin.PreBind.class, ExtensionPoint.EXTENSION_POINT_PRE_BIND);
    POINTS.put(Plugin.Bind.class, ExtensionPoint.EXTENSION_POINT_BIND);
    POINTS.put(Plugin.PostBind.class, ExtensionPoint.EXTENSION_POINT_POST_BIND);
    POINTS.put(Plugin.CycleDone.class, ExtensionPoint.EXTENSION_POINT_CYCLE_DONE);
    POINTS.put(Plugin.QueueSort.class, ExtensionPoint.EXTENSION_POINT_QUEUE_SORT);
    POINTS.put(Plugin.GeneratePlacements.class, ExtensionPoint.EXTENSION_POINT_PLACEMENT_GENERATE);
    POINTS.put(Plugin.ScorePlacements.class, ExtensionPoint.EXTENSION_POINT_PLACEMENT_SCORE);
    POINTS.put(Plugin.PlacementFeasible.class, ExtensionPoint.EXTENSION_POINT_PLACEMENT_FEASIBLE);
    POINTS.put(
        Plugin.PodGroupPostFilter.class, ExtensionPoint.EXTENSION_POINT_POD_GROUP_POST_FILTER);
    POINTS.put(Plugin.Hint.class, ExtensionPoint.EXTENSION_POINT_QUEUEING_HINTS);
    POINTS.put(Plugin.Hints.class, ExtensionPoint.EXTENSION_POINT_QUEUEING_HINTS);
  }

  private Capabilities() {}

  /** The introduction; the socket is that of ttrpc, null if there is none. */
  static Identity.HandshakeResponse of(Plugin plugin, Traits traits, String socket) {
    boolean hints = plugin instanceof Plugin.Hint || plugin instanceof Plugin.Hints;
    Identity.Capabilities.Builder made =
        Identity.Capabilities.newBuilder()
            .addAllExtensionPoints(points(plugin, traits))
            .setState(interest(traits))
            .setNodeLocal(traits.nodeLocal)
            .setScoreNeedsFeasible(traits.scoreNeedsFeasible)
            .setConverse(true)
            .setConverseTogether(true)
            .setListedCandidates(true)
            .setClock(traits.clock != null);
    traits.events.forEach(event -> made.addEvents(event.message(hints)));
    if (traits.podFields != null) {
      made.setPodFields(Identity.PodFields.newBuilder().addAllPaths(traits.podFields));
    }
    if (traits.arguments != null) {
      made.setArgumentsSchema(ByteString.copyFrom(traits.arguments.schema()));
    }
    if (traits.deadline != null) {
      made.setWantedDeadline(Binding.duration(traits.deadline));
    }
    traits.deadlines.forEach(
        (point, wanted) ->
            made.addWantedDeadlinesBuilder()
                .setExtensionPoint(POINTS.get(point))
                .setDeadline(Binding.duration(wanted)));
    if (socket != null) {
      made.setTtrpcSocket(socket);
    }
    return Identity.HandshakeResponse.newBuilder()
        .setName(traits.name)
        .setVersion(traits.version)
        .addSupportedVersions(1)
        .setCapabilities(made)
        .build();
  }

  private static List<ExtensionPoint> points(Plugin plugin, Traits traits) {
    List<ExtensionPoint> points =
        new ArrayList<>(
            POINTS.entrySet().stream()
                .filter(each -> each.getKey().isInstance(plugin))
                .map(Map.Entry::getValue)
                .distinct()
                .toList());
    // A method that sees one node at a time sees no pods, so none changes its verdict.
    if (plugin instanceof Plugin.FilterNodes && traits.pods) {
      points.add(ExtensionPoint.EXTENSION_POINT_FILTER_OVERLAYS);
    }
    if (traits.requeue != null) {
      points.add(ExtensionPoint.EXTENSION_POINT_REQUEUE);
    }
    return points;
  }

  private static Identity.StateInterest interest(Traits traits) {
    Identity.StateInterest.Builder made =
        Identity.StateInterest.newBuilder()
            .setNodes(true)
            .setPods(traits.pods)
            .setNominations(traits.nominations)
            .addAllPodResources(traits.podResources)
            .setPodsWithoutStatus(traits.podsWithoutStatus);
    for (WatchedResource kind : traits.watched) {
      Identity.WatchedResource.Builder watched =
          made.addResourcesBuilder()
              .setGroup(kind.group())
              .setVersion(kind.version())
              .setResource(kind.resource());
      if (!kind.labelSelector().isEmpty()) {
        watched.setLabelSelector(kind.labelSelector());
      }
    }
    return made.build();
  }

  /** What the scheduler could not work with, as sentences. */
  static List<String> problems(Plugin plugin, Traits traits) {
    List<String> problems = new ArrayList<>();
    if (!DNS_LABEL.matcher(traits.name).matches()) {
      problems.add("the name is no DNS label");
    }
    if (plugin instanceof Plugin.Filter && plugin instanceof Plugin.FilterNodes
        || plugin instanceof Plugin.Score && plugin instanceof Plugin.ScoreNodes
        || plugin instanceof Plugin.Hint && plugin instanceof Plugin.Hints) {
      problems.add("two forms of one question: implement the one or the other");
    }
    if (traits.deadline != null) {
      checkDeadline("wantedDeadline", traits.deadline, problems);
    }
    traits.deadlines.forEach(
        (point, wanted) -> {
          String what = "wantedDeadline of " + point.getSimpleName();
          checkDeadline(what, wanted, problems);
          if (!POINTS.containsKey(point)) {
            problems.add(what + ": that is no extension point");
          }
        });
    return problems;
  }

  private static void checkDeadline(String what, Duration wanted, List<String> problems) {
    if (wanted.isNegative() || wanted.isZero()) {
      problems.add(what + " is not above 0");
    }
  }
}
