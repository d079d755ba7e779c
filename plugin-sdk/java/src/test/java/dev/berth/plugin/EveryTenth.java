package dev.berth.plugin;

import io.fabric8.kubernetes.api.model.Pod;

/**
 * The plugin that the sidecar benchmark starts: it turns down every tenth node, and scores the
 * others by their number. As the plugins in other languages beside it, it follows pods too.
 */
public final class EveryTenth implements Plugin.FilterNodes, Plugin.ScoreNodes {
  private static final int LEFT_OUT = 10;
  private static final int SCORES = 101;
  private static final Reason WRONG_NUMBER = Reason.of("node(s) had the wrong number");

  private final String name;

  private EveryTenth(String name) {
    this.name = name;
  }

  @Override
  public Traits traits() {
    return Traits.named(name).pods();
  }

  @Override
  public Verdicts filterNodes(Pod pod, Nodes nodes) {
    Verdicts verdicts = new Verdicts(nodes.size());
    for (int at = 0; at < nodes.size(); at += LEFT_OUT) {
      verdicts.reject(at, WRONG_NUMBER);
    }
    return verdicts;
  }

  @Override
  public long[] scoreNodes(Pod pod, Nodes nodes) {
    long[] scores = new long[nodes.size()];
    for (int at = 0; at < scores.length; at++) {
      scores[at] = at % SCORES;
    }
    return scores;
  }

  /** Serves the plugin of that name at that address. */
  public static void main(String[] arguments) {
    Program.main(new EveryTenth(arguments[0]), "--address", arguments[1], "--log-level", "error");
  }
}
