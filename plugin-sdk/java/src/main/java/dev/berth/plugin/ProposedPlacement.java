package dev.berth.plugin;

import berth.plugin.v1.PlacementOuterClass;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** A placement in which a pod group fits: its name, its nodes, and the node of each pod. */
public record ProposedPlacement(String name, BitSet nodes, List<Assignment> assignments) {
  /** A pod of the group, and the index of the node that it would go to. */
  public record Assignment(PodKey pod, int node) {}

  /**
   * A proposal about this group and so many nodes.
   *
   * @throws CallException if the message is about another group, or other nodes
   */
  static ProposedPlacement of(
      PlacementOuterClass.ProposedPlacement message, PodGroup group, int count) {
    if (message.getPodIndicesCount() != message.getNodeIndicesCount()) {
      throw CallException.invalid("proposed: not one node for each pod");
    }
    List<Assignment> assignments = new ArrayList<>();
    for (int i = 0; i < message.getPodIndicesCount(); i++) {
      int pod = message.getPodIndices(i);
      int node = message.getNodeIndices(i);
      // Read as signed numbers, those above 2^31 are negative.
      if (pod < 0 || pod >= group.pods().size() || node < 0 || node >= count) {
        throw CallException.invalid("proposed: a pod or a node that is not there");
      }
      assignments.add(new Assignment(group.pods().get(pod), node));
    }
    BitSet nodes = Packing.unpack(message.getPlacement().getBitmap(), count);
    return new ProposedPlacement(message.getPlacement().getName(), nodes, assignments);
  }
}
