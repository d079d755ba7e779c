package hello;

import dev.berth.plugin.Action;
import dev.berth.plugin.Argument;
import dev.berth.plugin.Arguments;
import dev.berth.plugin.ClusterEvent;
import dev.berth.plugin.EventInterest;
import dev.berth.plugin.Plugin;
import dev.berth.plugin.Program;
import dev.berth.plugin.Reason;
import dev.berth.plugin.Traits;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;

/**
 * Keeps pods on their own team's nodes, and off those of no team where it can: a template to copy.
 * Teams are named by a label of nodes and pods.
 */
public final class Hello implements Plugin.Filter, Plugin.Score, Plugin.Hint {
  private static final Reason OTHER_TEAM = Reason.of("node(s) belonged to another team");

  private final Arguments<Settings> arguments = Arguments.of(new Settings("team"));

  record Settings(@Argument("the label of nodes and pods that names a team") String label) {}

  @Override
  public Traits traits() {
    return Traits.named("hello")
        .version("0.1.0")
        .arguments(arguments)
        .events(EventInterest.of("Node", Action.ADD, Action.UPDATE_NODE_LABEL))
        .podFields("/metadata/labels", "/spec/schedulerName")
        .nodeLocal();
  }

  /** Turns down the nodes of other teams. */
  @Override
  public Reason filter(Pod pod, Node node) {
    String label = arguments.of(pod).label();
    String team = node.getMetadata().getLabels().get(label);
    return team == null || team.equals(pod.getMetadata().getLabels().get(label))
        ? null
        : OTHER_TEAM;
  }

  /** Prefers the team's own nodes to those of no team. */
  @Override
  public long score(Pod pod, Node node) {
    return node.getMetadata().getLabels().containsKey(arguments.of(pod).label()) ? 100 : 0;
  }

  /** Tries a pod again when a node is not another team's any more. */
  @Override
  public boolean queueingHint(Pod pod, ClusterEvent event) {
    return event.after(Node.class).map(node -> filter(pod, node) == null).orElse(true);
  }

  /** Serves the plugin. */
  public static void main(String[] flags) {
    Program.main(new Hello(), flags);
  }
}
