package dev.berth.plugin;

import java.util.function.LongSupplier;

/**
 * Lines about methods of the author that fail, unless there are too many: one that fails at every
 * pod does not fill the disk. The next line says how many were left out.
 */
final class FailureLog {
  static final int LINES_AT_ONCE = 20;
  static final FailureLog FAILURES = new FailureLog(System::nanoTime);
  private static final System.Logger LOG = System.getLogger("berth");
  private static final double LINES_A_NANOSECOND = 0.5e-9;

  private final LongSupplier now;
  private double left = LINES_AT_ONCE;
  private long looked;
  private int leftOut;

  FailureLog(LongSupplier now) {
    this.now = now;
    looked = now.getAsLong();
  }

  /**
   * Writes the line, with the stack of what was thrown if anything was, where there is room for it.
   */
  void failed(String text, Throwable thrown) {
    int before = admits();
    if (before >= 0) {
      LOG.log(System.Logger.Level.ERROR, before > 0 ? text + " left_out=" + before : text, thrown);
    }
  }

  /** How many lines were left out before this one, -1 where there is no room for it. */
  synchronized int admits() {
    long moment = now.getAsLong();
    left = Math.min(LINES_AT_ONCE, left + (moment - looked) * LINES_A_NANOSECOND);
    looked = moment;
    if (left < 1) {
      leftOut++;
      return -1;
    }
    left--;
    int before = leftOut;
    leftOut = 0;
    return before;
  }
}
