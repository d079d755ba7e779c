package dev.berth.locality;

import dev.berth.plugin.Nodes;

/**
 * How much of one data set is cached on each node, in its rack and in its zone, in percent. Nodes
 * cache different parts, as the workers of a distributed cache do, so what they have adds up.
 */
final class Shares {
  private static final int WHOLE = 100;

  private final Topology topology;
  private final int[] onNode;
  private final int[] inDomain; // racks and zones have numbers of their own

  Shares(Dataset dataset, Nodes nodes, Topology topology) {
    this.topology = topology;
    onNode = new int[nodes.size()];
    inDomain = new int[topology.size()];
    dataset.cachedPercent().forEach((name, percent) -> add(nodes.index(name), percent));
  }

  private void add(int at, int percent) {
    if (at < 0) {
      return; // the node is gone, and its cache with it
    }
    onNode[at] = percent;
    if (topology.rack(at) != Topology.NONE) {
      inDomain[topology.rack(at)] += percent;
    }
    if (topology.zone(at) != Topology.NONE) {
      inDomain[topology.zone(at)] += percent;
    }
  }

  int node(int at) {
    return onNode[at];
  }

  /** At least the node's. */
  int rack(int at) {
    int rack = topology.rack(at);
    return rack == Topology.NONE ? onNode[at] : Math.min(WHOLE, inDomain[rack]);
  }

  /** At least the rack's. */
  int zone(int at) {
    int zone = topology.zone(at);
    return zone == Topology.NONE ? rack(at) : Math.min(WHOLE, inDomain[zone]);
  }

  /** What the node is worth, times 100: each part of the data counts where it is nearest. */
  long worth(int at, Settings.Weights weights) {
    int node = node(at);
    int rack = rack(at);
    return (long) weights.node() * node
        + (long) weights.rack() * (rack - node)
        + (long) weights.zone() * (zone(at) - rack);
  }
}
