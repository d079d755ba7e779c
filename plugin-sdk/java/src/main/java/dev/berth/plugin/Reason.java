package dev.berth.plugin;

/** Why a node is turned down; equal for all the nodes that it applies to. */
public record Reason(Code code, String text) {
  public Reason {
    if (code != Code.UNSCHEDULABLE && code != Code.UNSCHEDULABLE_AND_UNRESOLVABLE) {
      throw new IllegalArgumentException("a reason's code is an unschedulable one, not " + code);
    }
    if (text == null || text.isEmpty()) {
      throw new IllegalArgumentException("a reason needs a text");
    }
  }

  /** The reason for nodes on which evicting pods, or an event, may help. */
  public static Reason of(String text) {
    return new Reason(Code.UNSCHEDULABLE, text);
  }

  /** The reason for nodes on which evicting pods would not help. */
  public static Reason unresolvable(String text) {
    return new Reason(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, text);
  }
}
