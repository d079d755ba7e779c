package dev.berth.locality;

import dev.berth.plugin.Nodes;
import io.fabric8.kubernetes.api.model.Node;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The racks and zones of all nodes by index, as numbers, with {@link #NONE} for a node that has no
 * such label. Racks of the same name in different zones are different racks.
 */
final class Topology {
  static final int NONE = -1;

  private final String rackLabel;
  private final String zoneLabel;
  private final List<Integer> racks = new ArrayList<>();
  private final List<Integer> zones = new ArrayList<>();
  private final Map<List<String>, Integer> numbers = new HashMap<>();

  Topology(String rackLabel, String zoneLabel, Nodes nodes) {
    this.rackLabel = rackLabel;
    this.zoneLabel = zoneLabel;
    for (int at = 0; at < nodes.size(); at++) {
      put(at, nodes.at(at));
    }
  }

  /** A node came at index n, or changed at its index. */
  void put(int at, Node node) {
    Map<String, String> labels = node.getMetadata().getLabels();
    String zone = labels == null ? null : labels.get(zoneLabel);
    String rack = labels == null ? null : labels.get(rackLabel);
    int zoneNumber = zone == null ? NONE : number(List.of(zone));
    int rackNumber = rack == null ? NONE : number(List.of(zone == null ? "" : zone, rack));
    if (at == racks.size()) {
      racks.add(rackNumber);
      zones.add(zoneNumber);
    } else {
      racks.set(at, rackNumber);
      zones.set(at, zoneNumber);
    }
  }

  /** A node went, and the last one moved to its index. */
  void remove(int at, int last) {
    racks.set(at, racks.get(last));
    zones.set(at, zones.get(last));
    racks.remove(last);
    zones.remove(last);
  }

  int rack(int at) {
    return racks.get(at);
  }

  int zone(int at) {
    return zones.get(at);
  }

  /** How many numbers there are for racks and zones together. */
  int size() {
    return numbers.size();
  }

  private int number(List<String> path) {
    return numbers.computeIfAbsent(path, key -> numbers.size());
  }
}
