package berth.samelabel;

import berth.plugin.v1.State.Change;
import berth.plugin.v1.State.Delta;
import berth.plugin.v1.State.NackReason;
import berth.plugin.v1.State.NodeRemove;
import berth.plugin.v1.State.NodeUpsert;
import com.google.gson.JsonParseException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** All nodes by index, up to one generation; generation 0 means that nothing is held. */
final class Held {
    record Node(String name, Map<String, String> labels) {}

    final String epoch;
    final List<Node> nodes = new ArrayList<>();
    long generation;

    /** The first generation since which no node has changed its index. */
    long indicesSince;

    Held() {
        this.epoch = "";
    }

    /** Holds what a full transfer brought. */
    Held(String epoch, long generation, List<Change> changes, int nodeCount) throws RefusedException {
        this.epoch = epoch;
        this.generation = generation;
        this.indicesSince = generation;
        apply(changes, nodeCount);
    }

    /** Takes one step. A step that is held already is skipped. */
    void follow(Delta delta) throws RefusedException {
        if (delta.getGeneration() <= generation) {
            return;
        }
        if (delta.getBaseGeneration() != generation) {
            throw new RefusedException(NackReason.NACK_REASON_GAP, generation + " is held");
        }
        if (apply(delta.getChangesList(), delta.getNodeCount())) {
            indicesSince = delta.getGeneration();
        }
        generation = delta.getGeneration();
    }

    /** Applies the changes in order, and says whether indices are others than before. */
    private boolean apply(List<Change> changes, int nodeCount) throws RefusedException {
        int before = nodes.size();
        boolean removed = false;
        for (Change change : changes) {
            switch (change.getChangeCase()) {
                case NODE_UPSERT -> put(change.getNodeUpsert());
                case NODE_REMOVE -> {
                    remove(change.getNodeRemove());
                    removed = true;
                }
                default -> {} // Pods and objects of other kinds were not asked for.
            }
        }
        if (nodes.size() != nodeCount) {
            throw new RefusedException(NackReason.NACK_REASON_MISMATCH, nodes.size() + " nodes are held");
        }
        return removed || before != nodes.size();
    }

    private void put(NodeUpsert upsert) throws RefusedException {
        Node node;
        try {
            node = new Node(upsert.getName(), Labels.of(upsert.getObject()));
        } catch (JsonParseException error) {
            throw new RefusedException(NackReason.NACK_REASON_BAD_OBJECT, error.getMessage());
        }
        int index = upsert.getIndex();
        if (index == nodes.size()) {
            nodes.add(node);
        } else {
            checkName(index, node.name());
            nodes.set(index, node);
        }
    }

    private void remove(NodeRemove removal) throws RefusedException {
        checkName(removal.getIndex(), removal.getName());
        Node last = nodes.remove(nodes.size() - 1);
        if (removal.getIndex() < nodes.size()) {
            nodes.set(removal.getIndex(), last);
        }
    }

    private void checkName(int index, String name) throws RefusedException {
        if (index < 0 || index >= nodes.size() || !nodes.get(index).name().equals(name)) {
            throw new RefusedException(NackReason.NACK_REASON_MISMATCH, name + " is not at " + index);
        }
    }
}
