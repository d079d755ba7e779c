package dev.berth.plugin;

/**
 * How an attempt ended: on which node, empty if none was chosen, and whether this plugin is among
 * those that turned the pod down.
 */
public record Outcome(Result result, String nodeName, boolean rejected) {
  /** The ends of an attempt, in the order of the protocol's numbers, which begin with 1. */
  public enum Result {
    BOUND,
    UNSCHEDULABLE,
    FAILED,
    ABORTED
  }
}
