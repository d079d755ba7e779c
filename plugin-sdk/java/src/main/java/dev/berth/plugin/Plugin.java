package dev.berth.plugin;

import com.fasterxml.jackson.databind.JsonNode;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Map;

/**
 * A scheduler plugin. A class implements an interface for each question that it answers, such as
 * {@link Filter} and {@link Score}; those are announced, and no other is asked.
 *
 * <p>Methods are called one at a time, in the order in which the scheduler asked, so what they
 * share needs no locks. One that waits for something outside the process does so in {@link
 * Turns#await}. {@link Call#current} gives profile and attempt. An exception fails the attempt with
 * its text.
 */
public interface Plugin {
  /** What the plugin says about itself; asked once. */
  Traits traits();

  /** Hears, before anything else, how its own threads and timers take their turn. */
  default void serving(Turns turns) {}

  /** Hears that a profile does not use the plugin any more. */
  default void profileRemoved(String profile) {}

  /** What the plugin counts itself, shown at /metrics behind what the SDK counts. */
  default List<Metric> metrics() {
    return List.of();
  }

  /** How things stand inside, shown at /state as JSON: anything that Jackson can write. */
  default Object state() {
    return Map.of();
  }

  /** Whether a pod may enter the queue. */
  interface PreEnqueue extends Plugin {
    /** {@link Status#SUCCESS}, or why not. */
    Status preEnqueue(Pod pod);
  }

  /** A verdict on a pod before any node is looked at. */
  interface PreFilter extends Plugin {
    /** {@link Status#SUCCESS}, {@link Status#SKIP} where there is nothing to filter, or why not. */
    Status preFilter(Pod pod);
  }

  /** A verdict on each node by itself. */
  interface Filter extends Plugin {
    /** Null if the node can take the pod, else why not. */
    Reason filter(Pod pod, Node node);
  }

  /** A verdict on all nodes at once. */
  interface FilterNodes extends Plugin {
    /**
     * Answers with a verdict for each node, asked about or not: {@link Nodes#verdicts} makes them.
     * What is said of nodes that are not asked about is ignored.
     */
    Verdicts filterNodes(Pod pod, Nodes nodes);
  }

  /** Room for a pod that no node was left for. */
  interface PostFilter extends Plugin {
    /** {@link Nomination}, {@link Status#SUCCESS} where something was done, or why not. */
    Answer.ToPostFilter postFilter(Pod pod, Nodes nodes, Verdicts verdicts);
  }

  /** How good each node is by itself. */
  interface Score extends Plugin {
    /** 0 to 100, unless {@link Traits#normalization} says otherwise. */
    long score(Pod pod, Node node);
  }

  /** How good all nodes are, at once. */
  interface ScoreNodes extends Plugin {
    /**
     * A number for each node by index, asked about or not: {@link Nodes#scores} makes them; null:
     * no opinion on this pod.
     */
    long[] scoreNodes(Pod pod, Nodes nodes);
  }

  /** What a pod will use, set aside until it is bound. */
  interface Reserve extends Plugin {
    /**
     * Sets it aside under {@link Call#key}; repeating it changes nothing. A {@link MetadataPatch}
     * accepts, and is written in PreBind's place.
     */
    Answer.ToReserve reserve(Pod pod, Node node);

    /** Gives it back; unknown keys and older attempts are to be ignored. */
    void unreserve(PodKey key, String nodeName);
  }

  /** Leave to bind. */
  interface Permit extends Plugin {
    /** {@link Status#SUCCESS}, {@link Wait}, which {@link Requeue} ends earlier, or why not. */
    Answer.ToPermit permit(Pod pod, Node node);
  }

  /** The last preparation before a pod is bound. */
  interface PreBind extends Plugin {
    /** {@link Status#SUCCESS}, {@link MetadataPatch} to be written with the binding, or why not. */
    Answer.ToReserve preBind(Pod pod, Node node);
  }

  /** The binding, written in the scheduler's place. */
  interface Bind extends Plugin {
    /** {@link Status#SUCCESS}, or {@link Status#SKIP}, which leaves it to the next binder. */
    Status bind(Pod pod, Node node, Map<String, String> annotations);
  }

  /** News of bound pods. */
  interface PostBind extends Plugin {
    /** Hears that the pod was bound. */
    void postBind(PodKey key, String nodeName);
  }

  /** News of attempts. */
  interface CycleDone extends Plugin {
    /** Hears what became of an attempt. */
    void cycleDone(PodKey key, Outcome outcome);
  }

  /** Whether an event may let a pod fit that this plugin turned down. */
  interface Hint extends Plugin {
    /** Answers for one pod and one event. */
    boolean queueingHint(Pod pod, ClusterEvent event);
  }

  /** The same for all pods and events at once. */
  interface Hints extends Plugin {
    /** A row an event, a column a pod. */
    boolean[][] queueingHints(List<Pod> pods, List<ClusterEvent> events);
  }

  /** The queue's order. */
  interface QueueSort extends Plugin {
    /**
     * Where the pod stands in the queue, the lowest key first. Asked once for each version of the
     * pod; {@link Requeue#sortKeys} gives other keys later. A failure is logged, and the pod has
     * the key 0.
     */
    SortKey sortKey(Pod pod);

    /** Hears of pods, by UID, that {@code sortKey} was asked about and that wait no more. */
    default void podsLeft(List<String> uids) {}

    /**
     * Hears that the profile's pods that {@code sortKey} was asked about are to be forgotten: all
     * that wait are asked about anew.
     */
    default void queueReset(String profile) {}
  }

  /** Where a pod group may go as a whole. */
  interface GeneratePlacements extends Plugin {
    /**
     * {@link Placements}, {@link Status#SKIP} for no opinion, or why the group can go nowhere; the
     * pod is the first of the group's. Nodes that were not asked about are left out of a set, and
     * so is a set that has no node then.
     */
    Answer.ToGeneratePlacements generatePlacements(PodGroup group, Pod pod, Nodes nodes);
  }

  /** How good the placements are in which a pod group fits. */
  interface ScorePlacements extends Plugin {
    /** A number for each, as if it were the only one; null: no opinion on this group. */
    long[] scorePlacements(PodGroup group, Pod pod, Nodes nodes, List<ProposedPlacement> proposed);
  }

  /** Whether a pod group may go with the pods that have a node. */
  interface PlacementFeasible extends Plugin {
    /**
     * {@link Status#SUCCESS} where it may as it stands; its other pods are tried all the same.
     * {@link Code#WAIT}: not yet; {@link Code#UNSCHEDULABLE}: it may not, however many of the
     * remaining pods find a node. The answer counts for the attempt, wherever the pods go.
     */
    Status placementFeasible(PodGroup group, Pod pod, PlacementProgress progress);
  }

  /** Which pods could be evicted for a pod group that fits nowhere. */
  interface PodGroupPostFilter extends Plugin {
    /**
     * {@link GroupPreemptions}, of which the scheduler has the first carried out by which the group
     * fits, or why there is nothing to be done. The verdicts are those on the first of its pods
     * that found no node.
     */
    Answer.ToPodGroupPostFilter podGroupPostFilter(
        PodGroup group, Pod pod, Nodes nodes, Verdicts verdicts);
  }

  /** News of the cluster, for columns of the plugin's own. An exception has all of it sent anew. */
  interface StateListener extends Plugin {
    /**
     * All nodes, pods and objects are forgotten, and the present ones follow. A changed epoch is
     * another run of the scheduler: its attempts are void, and so is what is held for them.
     */
    default void stateReset(boolean epochChanged) {}

    /** A full transfer is complete. */
    default void stateSettled() {}

    /** A new node at index n, or a changed one at its index. */
    default void nodeUpserted(int index, Node node) {}

    /** The node at that index went; the one at {@code last} moves there. */
    default void nodeRemoved(int index, int last) {}

    /** A pod that counts on a node came or changed. */
    default void podUpserted(PlacedPod placed) {}

    /** A pod no longer counts. */
    default void podRemoved(PlacedPod placed) {}

    /** An object of one of {@link Traits#watch} came or changed. */
    default void objectUpserted(ObjectKey key, JsonNode object) {}

    /** One went. */
    default void objectRemoved(ObjectKey key) {}
  }
}
