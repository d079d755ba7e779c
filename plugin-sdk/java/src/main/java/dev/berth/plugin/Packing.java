package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Scheduling;
import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;

/** What authors answer, in the form in which it is sent. */
final class Packing {
  private static final int MAX_SCORE = 100;
  private static final int MAX_BYTE = 255;

  private Packing() {}

  /**
   * A status.
   *
   * @throws ContractException if the code has no meaning here, or a rejection gives no reason
   */
  static Common.Status status(Status status, Set<Code> allowed) {
    if (status == null) {
      throw new ContractException("null is no answer here");
    }
    Code code = status.code();
    if (code != Code.SUCCESS && code != Code.ERROR && !allowed.contains(code)) {
      throw new ContractException(code + " is no answer here");
    }
    if (code != Code.SUCCESS && code != Code.SKIP && status.reasons().isEmpty()) {
      throw new ContractException(code + " without a reason");
    }
    return Common.Status.newBuilder().setCode(code.message).addAllReasons(status.reasons()).build();
  }

  /** Verdicts; what was not asked is sent as 0. */
  static Scheduling.Verdicts verdicts(Verdicts verdicts, Nodes nodes) {
    byte[] sent = new byte[nodes.entries()];
    boolean any = false;
    for (int entry = 0; entry < sent.length; entry++) {
      if (verdicts.codes[entry] != 0 && nodes.asks(entry)) {
        sent[entry] = verdicts.codes[entry];
        any = true;
      }
    }
    return any ? each(sent, verdicts.reasons) : Scheduling.Verdicts.newBuilder().setAll(0).build();
  }

  /** Codes, which are not to be changed any more, and their table. */
  static Scheduling.Verdicts each(byte[] codes, List<Reason> reasons) {
    Scheduling.Verdicts.Builder made = Scheduling.Verdicts.newBuilder();
    made.setEach(UnsafeByteOperations.unsafeWrap(codes));
    for (Reason reason : reasons) {
      made.addReasonsBuilder().setCode(reason.code().message).setText(reason.text());
    }
    return made.build();
  }

  /** The codes with their table, as they came. */
  static Verdicts unpack(Scheduling.Verdicts message, int count) {
    ByteString each = message.getEach();
    if (message.hasEach() && each.size() != count) {
      throw CallException.invalid(each.size() + " codes for " + count + " nodes");
    }
    Verdicts verdicts = new Verdicts(count);
    for (int i = 0; i < count; i++) {
      int code = message.hasEach() ? each.byteAt(i) & 0xff : message.getAll();
      if (code == 0) {
        continue;
      }
      if (Integer.compareUnsigned(code, message.getReasonsCount()) > 0) {
        throw CallException.invalid("code " + code + " has no reason");
      }
      verdicts.reject(i, reason(message.getReasons(code - 1)));
    }
    return verdicts;
  }

  private static Reason reason(Common.Reason message) {
    try {
      return new Reason(Code.of(message.getCode()), message.getText());
    } catch (IllegalArgumentException e) {
      throw CallException.invalid("verdicts: " + e.getMessage());
    }
  }

  /** Scores of nodes; what was not asked is sent as 0. */
  static Scheduling.Scores scores(long[] points, Normalization normalization, Nodes nodes) {
    return scores(points, normalization, nodes.entries(), nodes::asks);
  }

  /** That many scores in the narrowest form. */
  static Scheduling.Scores scores(long[] points, Normalization normalization, int count) {
    return scores(points, normalization, count, entry -> true);
  }

  /** The author may keep the array: what is not asked is passed over, not written into it. */
  private static Scheduling.Scores scores(
      long[] points, Normalization normalization, int count, IntPredicate asked) {
    if (points.length != count) {
      throw new ContractException("expected " + count + " scores, got " + points.length);
    }
    long low = 0;
    long high = 0;
    for (int entry = 0; entry < count; entry++) {
      if (asked.test(entry)) {
        low = Math.min(low, points[entry]);
        high = Math.max(high, points[entry]);
      }
    }
    if (normalization == Normalization.NONE && (low < 0 || high > MAX_SCORE)) {
      throw new ContractException(
          "scores from " + low + " to " + high + " without normalization: 0 to 100 is the range");
    }
    if (normalization != Normalization.MIN_MAX && low < 0) {
      throw new ContractException(
          "scores from " + low + ": they must not be negative to be divided by the highest");
    }
    Scheduling.Scores.Builder made =
        Scheduling.Scores.newBuilder().setNormalization(normalization.message);
    if (low >= 0 && high <= MAX_BYTE) {
      return made.setUint8(numbers(points, 1, asked)).build();
    } else if (low >= Integer.MIN_VALUE && high <= Integer.MAX_VALUE) {
      return made.setInt32(numbers(points, Integer.BYTES, asked)).build();
    }
    return made.setInt64(numbers(points, Long.BYTES, asked)).build();
  }

  private static ByteString numbers(long[] points, int width, IntPredicate asked) {
    ByteBuffer packed = ByteBuffer.allocate(width * points.length).order(ByteOrder.LITTLE_ENDIAN);
    for (int entry = 0; entry < points.length; entry++) {
      long point = asked.test(entry) ? points[entry] : 0;
      switch (width) {
        case 1 -> packed.put((byte) point);
        case Integer.BYTES -> packed.putInt((int) point);
        default -> packed.putLong(point);
      }
    }
    return UnsafeByteOperations.unsafeWrap(packed.flip()); // nothing else has the buffer
  }

  /** One bit an entry, least significant first. */
  static ByteString bits(boolean[] entries) {
    byte[] packed = new byte[(entries.length + 7) / 8];
    for (int i = 0; i < entries.length; i++) {
      if (entries[i]) {
        packed[i >> 3] |= (byte) (1 << (i & 7));
      }
    }
    return ByteString.copyFrom(packed);
  }

  /** The same of a set. */
  static ByteString bits(BitSet entries, int count) {
    return ByteString.copyFrom(Arrays.copyOf(entries.toByteArray(), (count + 7) / 8));
  }

  /**
   * The indices of so many nodes.
   *
   * @throws CallException if they are cut off, do not ascend, or are those of other nodes
   */
  static int[] indices(ByteString packed, int count) {
    if (packed.size() % Integer.BYTES != 0) {
      throw CallException.invalid(
          "candidates: indices of " + packed.size() + " bytes, each has " + Integer.BYTES);
    }
    int[] indices = new int[packed.size() / Integer.BYTES];
    packed.asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(indices);
    for (int i = 0; i < indices.length; i++) {
      if (Integer.compareUnsigned(indices[i], count) >= 0) {
        String index = Integer.toUnsignedString(indices[i]);
        throw CallException.invalid("candidates: index " + index + " of " + count + " nodes");
      }
      if (i > 0 && indices[i] <= indices[i - 1]) {
        throw CallException.invalid(
            "candidates: index "
                + indices[i]
                + " after "
                + indices[i - 1]
                + ": they have to ascend");
      }
    }
    return indices;
  }

  /** The set that a bitmap says. */
  static BitSet unpack(ByteString bitmap, int count) {
    if (bitmap.size() != (count + 7) / 8) {
      throw CallException.invalid(
          "a bitmap of " + bitmap.size() + " bytes for " + count + " nodes");
    }
    return BitSet.valueOf(bitmap.toByteArray());
  }
}
