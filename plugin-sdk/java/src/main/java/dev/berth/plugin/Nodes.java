package dev.berth.plugin;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Node;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * All nodes of the generation that a call is about, by index; valid until the method that was given
 * it returns.
 */
public final class Nodes {
  private final Mirror mirror;
  private final byte[] candidates;

  /** Null candidates mean all nodes; otherwise there is a bit for each. */
  Nodes(Mirror mirror, byte[] candidates) {
    this.mirror = mirror;
    this.candidates = candidates;
  }

  /**
   * The nodes that a request asks about, or all.
   *
   * @throws CallException if the bitmap has another length than the nodes
   */
  static Nodes of(Mirror mirror, ByteString bitmap) {
    int wanted = (mirror.nodes.size() + 7) / 8;
    if (bitmap != null && bitmap.size() != wanted) {
      throw CallException.invalid(
          "candidates: a bitmap of " + bitmap.size() + " bytes, " + wanted + " are due");
    }
    return new Nodes(mirror, bitmap == null ? null : bitmap.toByteArray());
  }

  /** The nodes that passed, of those that were asked about. */
  Nodes passing(Verdicts verdicts) {
    byte[] left = new byte[(size() + 7) / 8];
    for (int at = 0; at < size(); at++) {
      if (verdicts.codes[at] == 0 && isAsked(at)) {
        left[at >> 3] |= (byte) (1 << (at & 7));
      }
    }
    return new Nodes(mirror, left);
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
    return candidates == null || (candidates[index >> 3] >> (index & 7) & 1) == 1;
  }

  /** How many nodes are asked about. */
  int count() {
    if (candidates == null) {
      return size();
    }
    int count = 0;
    for (int at = 0; at < size(); at++) {
      count += isAsked(at) ? 1 : 0;
    }
    return count;
  }

  /** The indices of the nodes that are asked about. */
  public IntStream asked() {
    IntStream all = IntStream.range(0, size());
    return candidates == null ? all : all.filter(this::isAsked);
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
