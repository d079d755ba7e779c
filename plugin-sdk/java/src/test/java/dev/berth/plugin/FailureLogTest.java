package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** A method that fails at every pod has few lines, and the next one counts those left out. */
final class FailureLogTest {
  private long now;

  @Test
  void linesAreBounded() {
    FailureLog failures = new FailureLog(() -> now);
    long lines = IntStream.range(0, 100).filter(i -> failures.admits() >= 0).count();
    now = 2_000_000_000L;

    assertEquals(FailureLog.LINES_AT_ONCE, lines);
    assertEquals(80, failures.admits());
  }
}
