package dev.berth.plugin.testing;

import dev.berth.plugin.Reason;
import dev.berth.plugin.Status;
import java.util.List;
import java.util.Map;

/** The plugin's word on a pod, the nodes that can take it, and why others can't. */
public record Verdict(Status status, List<String> passing, Map<String, Reason> rejected) {
  /** Why the node is turned down, or what is said of the pod as a whole. */
  String about(String nodeName) {
    return status + " " + rejected.get(nodeName);
  }

  /** Whether the node can take the pod. */
  public boolean passes(String nodeName) {
    return passing.contains(nodeName);
  }
}
