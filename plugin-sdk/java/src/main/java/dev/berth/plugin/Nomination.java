package dev.berth.plugin;

import java.util.List;

/**
 * A node on which room is made, and the pods that have to go there first. Without a node what is
 * nominated is taken back; to keep it, answer {@link Status#SUCCESS}.
 */
public record Nomination(String nodeName, List<String> victimUids) implements Answer.ToPostFilter {
  /** Takes back what is nominated. */
  public static final Nomination CLEAR = new Nomination("", List.of());

  public Nomination {
    victimUids = List.copyOf(victimUids);
  }
}
