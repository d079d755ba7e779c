package dev.berth.plugin;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A verdict for each node; at first every node passes. */
public final class Verdicts {
  /** A code has a byte, and 0 passes. */
  static final int MAX_REASONS = 255;

  private static final Reason FURTHER = Reason.of("further reasons, more than one answer can hold");

  final byte[] codes;
  final List<Reason> reasons = new ArrayList<>();
  private final Map<Reason, Byte> rows = new HashMap<>();
  private Reason last;
  private byte lastRow;

  /** Verdicts on so many nodes. */
  public Verdicts(int count) {
    codes = new byte[count];
  }

  /** Turns a node down. */
  public void reject(int index, Reason reason) {
    if (reason != last) {
      lastRow = row(reason);
      last = reason;
    }
    codes[index] = lastRow;
  }

  /** The verdicts on the nodes at these indices. */
  Verdicts of(int[] indices) {
    Verdicts made = new Verdicts(indices.length);
    made.reasons.addAll(reasons);
    for (int entry = 0; entry < indices.length; entry++) {
      made.codes[entry] = codes[indices[entry]];
    }
    return made;
  }

  /** How many nodes there are. */
  public int size() {
    return codes.length;
  }

  /** Why that node is turned down, null if it passes. */
  public Reason reason(int index) {
    int row = codes[index] & 0xff;
    return row == 0 ? null : reasons.get(row - 1);
  }

  private byte row(Reason reason) {
    Byte known = rows.get(reason);
    if (known != null) {
      return known;
    }
    Reason added = reasons.size() < MAX_REASONS - 1 ? reason : FURTHER;
    return rows.computeIfAbsent(
        added,
        each -> {
          reasons.add(each);
          return (byte) reasons.size();
        });
  }
}
