package dev.berth.plugin;

import berth.plugin.v1.Scheduling;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Node;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;

/**
 * All nodes of the generation that a call is about, by index; valid until the method that was given
 * it returns.
 *
 * <p>An answer has an entry for each node or, where the scheduler lists the nodes that it asks
 * about, for each of the list.
 */
public final class Nodes {
  private final Mirror mirror;

  /** The indices behind the entries; null: entries are nodes. */
  private final int[] listed;

  /** A bit for each entry; null: all are asked about. */
  private final byte[] candidates;

  private Nodes(Mirror mirror, int[] listed, byte[] candidates) {
    this.mirror = mirror;
    this.listed = listed;
    this.candidates = candidates;
  }

  /** Null candidates mean all nodes; otherwise there is a bit for each. */
  Nodes(Mirror mirror, byte[] candidates) {
    this(mirror, null, candidates);
  }

  /**
   * The nodes that a request asks about; without candidates, all.
   *
   * @throws CallException if the bitmap has another length than the nodes, or the indices are no
   *     ascending list of nodes
   */
  static Nodes of(Mirror mirror, Scheduling.Candidates asked) {
    if (asked == null) {
      return new Nodes(mirror, null);
    }
    if (asked.hasIndices()) {
      int[] listed = Packing.indices(asked.getIndices(), mirror.nodes.size());
      return new Nodes(mirror, listed, null);
    }
    ByteString bitmap = asked.getBitmap();
    int wanted = (mirror.nodes.size() + 7) / 8;
    if (bitmap.size() != wanted) {
      throw CallException.invalid(
          "candidates: a bitmap of " + bitmap.size() + " bytes, " + wanted + " are due");
    }
    return new Nodes(mirror, bitmap.toByteArray());
  }

  /** The same entries, of which those are still asked about that passed. */
  Nodes passing(Verdicts verdicts) {
    byte[] left = new byte[(entries() + 7) / 8];
    for (int entry = 0; entry < entries(); entry++) {
      if (verdicts.codes[entry] == 0 && asks(entry)) {
        left[entry >> 3] |= (byte) (1 << (entry & 7));
      }
    }
    return new Nodes(mirror, listed, left);
  }

  /** How many nodes there are, asked about or not. */
  public int size() {
    return mirror.nodes.size();
  }

  /** The node at an index. */
  public Node at(int index) {
    return mirror.nodes.get(index);
  }

  /** Its name. */
  public String name(int index) {
    return mirror.names.get(index);
  }

  /** Whether the answer for that node matters. */
  public boolean isAsked(int index) {
    int entry = listed == null ? index : Arrays.binarySearch(listed, index);
    return entry >= 0 && asks(entry);
  }

  /** How many entries an answer has. */
  int entries() {
    return listed == null ? size() : listed.length;
  }

  /** The index of the node of an entry. */
  int index(int entry) {
    return listed == null ? entry : listed[entry];
  }

  /** Whether the answer for the node of that entry matters. */
  boolean asks(int entry) {
    return candidates == null || (candidates[entry >> 3] >> (entry & 7) & 1) == 1;
  }

  /** The entries whose answer matters. */
  IntStream askedEntries() {
    IntStream all = IntStream.range(0, entries());
    return candidates == null ? all : all.filter(this::asks);
  }

  /**
   * The entries of an answer, out of a verdict on each node.
   *
   * @throws ContractException if there is not one for each node
   */
  Verdicts entriesOf(Verdicts ofAll) {
    if (ofAll.size() != size()) {
      throw new ContractException("expected " + size() + " verdicts, got " + ofAll.size());
    }
    return listed == null ? ofAll : ofAll.of(listed);
  }

  /**
   * The entries of an answer, out of a score for each node.
   *
   * @throws ContractException if there is not one for each node
   */
  long[] entriesOf(long[] ofAll) {
    if (ofAll.length != size()) {
      throw new ContractException("expected " + size() + " scores, got " + ofAll.length);
    }
    return listed == null ? ofAll : IntStream.of(listed).mapToLong(at -> ofAll[at]).toArray();
  }

  /** How many nodes are asked about. */
  int count() {
    if (candidates == null) {
      return entries();
    }
    int count = 0;
    for (int entry = 0; entry < entries(); entry++) {
      count += asks(entry) ? 1 : 0;
    }
    return count;
  }

  /**
   * The indices of the nodes that are asked about: often fewer than {@link #size}. A vector has an
   * entry for each node all the same: make it with {@link #verdicts} or {@link #scores}, or write
   * the entry at the index.
   */
  public IntStream asked() {
    return askedEntries().map(this::index);
  }

  /**
   * The answer of {@link Plugin.FilterNodes}: why each node that is asked about is turned down,
   * null where it passes.
   */
  public Verdicts verdicts(IntFunction<Reason> reject) {
    Verdicts verdicts = new Verdicts(size());
    asked()
        .forEach(
            at -> {
              Reason reason = reject.apply(at);
              if (reason != null) {
                verdicts.reject(at, reason);
              }
            });
    return verdicts;
  }

  /** The answer of {@link Plugin.ScoreNodes}: the score of each node that is asked about. */
  public long[] scores(IntToLongFunction score) {
    long[] points = new long[size()];
    asked().forEach(at -> points[at] = score.applyAsLong(at));
    return points;
  }

  /** A node's index by name, -1 if there is none. */
  public int index(String name) {
    return mirror.index.getOrDefault(name, -1);
  }

  /** The pods that count on a node; none without {@link Traits#pods}. */
  public Collection<PlacedPod> podsOn(String nodeName) {
    return Collections.unmodifiableCollection(
        mirror.onNode.getOrDefault(nodeName, Map.of()).values());
  }

  /** The objects of watched kinds. */
  public Map<ObjectKey, JsonNode> objects() {
    return Collections.unmodifiableMap(mirror.objects);
  }
}
