package dev.berth.plugin;

import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Sets of nodes that a pod group may go to as a whole, in the order in which they are tried; at
 * first there are none.
 */
public final class Placements implements Answer.ToGeneratePlacements {
  final Map<String, BitSet> sets = new LinkedHashMap<>();

  /** Adds a node, by its index, to the set of that name, which users see. */
  public Placements add(String name, int node) {
    if (name.isEmpty()) {
      throw new IllegalArgumentException("a placement needs a name");
    }
    sets.computeIfAbsent(name, each -> new BitSet()).set(node);
    return this;
  }
}
