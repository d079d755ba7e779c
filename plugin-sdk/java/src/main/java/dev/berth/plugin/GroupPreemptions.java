package dev.berth.plugin;

import java.util.ArrayList;
import java.util.List;

/**
 * Sets of pods, by UID, without which a pod group may fit, in the order in which they are tried; at
 * first there are none, which says that room is on its way.
 */
public final class GroupPreemptions implements Answer.ToPodGroupPostFilter {
  final List<List<String>> sets = new ArrayList<>();

  /** Proposes to evict these pods, at least one. */
  public GroupPreemptions add(List<String> victimUids) {
    if (victimUids.isEmpty()) {
      throw new IllegalArgumentException("a proposal evicts no pod");
    }
    sets.add(List.copyOf(victimUids));
    return this;
  }
}
